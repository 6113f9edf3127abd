"""Documents of a server, read with care: each field may be missing, or of another kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dispatcher.platforms.kubernetes.api.server import Document


def name_of(document: Document) -> str:
    """The name of an object."""
    return str(document["metadata"]["name"])


def label_of(document: Document, label: str) -> str:
    """The value of a label of an object; empty if it has none of that name."""
    return text_of(mapping_in(mapping_in(document, "metadata"), "labels").get(label))


def uid_of(document: Document) -> str:
    """The uid of an object; empty if it has none."""
    return text_of(mapping_in(document, "metadata").get("uid"))


def mapping_in(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The mapping below a key; empty if there is none."""
    value = document.get(key)
    return value if isinstance(value, Mapping) else {}


def mappings_in(document: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the mappings of the list below a key."""
    value = document.get(key)
    for each in value if isinstance(value, list) else []:
        if isinstance(each, Mapping):
            yield each


def conditions_of(document: Document) -> Iterator[Mapping[str, Any]]:
    """Yield the conditions of an object."""
    yield from mappings_in(mapping_in(document, "status"), "conditions")


def condition_of(document: Document, *types: str) -> Mapping[str, Any] | None:
    """The first condition of these types that holds. Their order in the list says nothing."""
    holds = [each for each in conditions_of(document) if each.get("status") == "True"]
    return next((each for type_ in types for each in holds if each.get("type") == type_), None)


def sentence_of(condition: Mapping[str, Any]) -> str:
    """The reason and the message of a condition, in one line."""
    return sentence(condition.get("reason"), condition.get("message"))


def sentence(reason: object, message: object) -> str:
    """A reason and a message in one line."""
    parts = [" ".join(text_of(each).split()) for each in (reason, message)]
    return ": ".join(part for part in parts if part)


def text_of(value: object) -> str:
    """A value as text; empty for none."""
    return "" if value is None else str(value)
