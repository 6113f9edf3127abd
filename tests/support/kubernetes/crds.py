"""A published CustomResourceDefinition as a judge: closed, so that a misspelt field is an error.

A real server drops fields that such a definition does not know, and says nothing of them unless it
is asked to. Rules that are written in CEL are not run; one that matters is restated where it does.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.support.kubernetes.contract import complaints

CONTRACTS = Path(__file__).parents[2] / "contracts"

_KEEPS = "x-kubernetes-preserve-unknown-fields"
_EITHER = "x-kubernetes-int-or-string"


class Crd:
    """One version of a kind of object that a definition brings.

    Args:
        document: the definition.
        version: which of its versions; None: the stored one.
        rules: what no schema says: each gets an object as it was (None: it is new) and as it is to
            be, and returns complaints.

    Attributes:
        document: the definition.
        group: of the kind.
        version: of the kind.
        plural: its name in paths.
        word: the kind, as objects name it.
        has_status: whether the status is a resource of its own, which only its controller writes.
        in_namespaces: whether each object is in one.
        rules: see above; a controller may add what it refuses itself.
    """

    def __init__(
        self,
        document: dict[str, Any],
        version: str | None = None,
        *,
        rules: Sequence[Callable[[Any, Any], list[str]]] = (),
    ) -> None:
        spec = document["spec"]
        versions = spec["versions"]
        chosen = next(x for x in versions if x["name"] == version or (not version and x["storage"]))
        self.document = document
        self.group: str = spec["group"]
        self.version: str = chosen["name"]
        self.plural: str = spec["names"]["plural"]
        self.word: str = spec["names"]["kind"]
        self.list_word: str = spec["names"].get("listKind", f"{self.word}List")
        self.has_status = "status" in chosen.get("subresources", {})
        self.in_namespaces = spec.get("scope", "Namespaced") == "Namespaced"
        self.rules = list(rules)
        self._schema = chosen["schema"]["openAPIV3Schema"]

    @property
    def api_version(self) -> str:
        """The group and the version, as objects have it."""
        return f"{self.group}/{self.version}"

    @property
    def published(self) -> dict[str, Any]:
        """The schema as a server publishes it: by the name that it has there."""
        name = ".".join([*reversed(self.group.split(".")), self.version, self.word])
        about = {"group": self.group, "kind": self.word, "version": self.version}
        return {name: {**self._schema, "x-kubernetes-group-version-kind": [about]}}

    def complaints(self, document: Any, before: Any = None) -> list[str]:
        """What the definition has against an object.

        Args:
            document: the object.
            before: as it was.
        """
        found = [
            f"{'.'.join(map(str, error.absolute_path))}: {error.message}"
            for error in self._validator.iter_errors(document)
        ]
        if isinstance(document, dict):
            about = complaints("ObjectMeta", document.get("metadata", {}))
            found += [f"metadata.{each}" for each in about]
        return found + [each for rule in self.rules for each in rule(before, document)]

    def pruned(self, document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """An object with what the definition adds by itself, without the fields that it does not
        know; and the paths of these."""
        dropped: list[str] = []
        usual = ("apiVersion", "kind", "metadata")
        inner = {key: value for key, value in document.items() if key not in usual}
        made = _pruned(self._schema, inner, "", dropped)
        kept = {key: copy.deepcopy(document[key]) for key in usual if key in document}
        return {**kept, **made}, dropped

    @cached_property
    def _validator(self) -> Draft202012Validator:
        schema = closed(self._schema)
        schema["properties"] |= {
            "apiVersion": {"const": self.api_version},
            "kind": {"const": self.word},
            "metadata": self._named(),
        }
        schema["required"] = sorted({*schema.get("required", ()), "apiVersion", "kind", "metadata"})
        return Draft202012Validator(schema)

    def _named(self) -> dict[str, Any]:
        """What the definition says of the metadata, of which it may restrict the name only."""
        name = self._schema["properties"].get("metadata", {}).get("properties", {}).get("name")
        return {"type": "object", "properties": {"name": name}} if name else {"type": "object"}


def published(system: str, name: str, **more: Any) -> Crd:
    """A definition of ``tests/contracts``.

    Args:
        system: the folder there.
        name: of the file, without ``.json``.
        more: as for :class:`Crd`.
    """
    return Crd(json.loads((CONTRACTS / system / f"{name}.json").read_text()), **more)


def closed(schema: Any) -> Any:
    """A structural schema as a JSON schema that takes no field which it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        key: {name: closed(each) for name, each in value.items()}
        if key == "properties"
        else value
        if key in ("default", "enum", "example")
        else closed(value)
        for key, value in schema.items()
        if not key.startswith("x-kubernetes-") and key not in ("nullable", "format")
    }
    if schema.get(_EITHER):
        made.pop("anyOf", None)
        made["type"] = ["integer", "string"]
    if schema.get("type") == "object" and not schema.get(_KEEPS):
        made.setdefault("additionalProperties", False)
    if schema.get("nullable"):
        if "enum" in made:
            made["enum"] = [*made["enum"], None]
        given = made.get("type")
        if given is not None:
            made["type"] = [*given, "null"] if isinstance(given, list) else [given, "null"]
    return made


def _pruned(schema: Any, value: Any, path: str, dropped: list[str]) -> Any:
    if isinstance(value, list):
        inner = schema.get("items", {})
        return [_pruned(inner, x, f"{path}[{i}]", dropped) for i, x in enumerate(value)]
    if not isinstance(value, dict):
        return value
    known, more = schema.get("properties", {}), schema.get("additionalProperties")
    made = {}
    for key, inner in value.items():
        place = f"{path}.{key}".lstrip(".")
        if key in known:
            made[key] = _pruned(known[key], inner, place, dropped)
        elif isinstance(more, dict):
            made[key] = _pruned(more, inner, place, dropped)
        elif more or schema.get(_KEEPS):
            made[key] = copy.deepcopy(inner)
        else:
            dropped.append(place)
    for key, inner in known.items():
        if key not in made and isinstance(inner, dict) and "default" in inner:
            made[key] = copy.deepcopy(inner["default"])
    return made
