"""Kinds of value for sections whose agents run in containers."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from dispatcher.experiment.fields import Text, resolve_path
from dispatcher.experiment.references import ENV, FILE

_URL = re.compile(r"https?://[^/\s?#@]+(/[^\s?#]*)?")
_LOGIN = re.compile(r"^(\w+://)?.*@", re.DOTALL)
_QUERY = re.compile(r"(://[^?#]*)[?#].*", re.DOTALL)


def _check_url(text: str) -> str:
    whole = text if "://" in text else f"https://{text}"
    if not _URL.fullmatch(whole):
        found = f"not {_shown(text)!r}"
        raise ValueError(f"must be the address of a service, as https://HOST, {found}")
    return whole.rstrip("/")


def _shown(text: str) -> str:
    """A text as errors have it: an address without its login, and without what follows its path,
    which may be a signature."""
    text = _LOGIN.sub(r"\1***@", text) if "@" in text else text
    return _QUERY.sub(r"\1?***", text)


def _check_path(text: str) -> str:
    if not text.startswith("/") or ".." in text.split("/") or not text.isprintable():
        raise ValueError(f"must be a path from the root there, not {text!r}")
    return text.rstrip("/") or "/"


def _check_image(text: str) -> str:
    if not text.isprintable() or " " in text:
        raise ValueError(f"must be an image, as registry/name:tag, not {text!r}")
    return text


def _resolve(text: str, info: ValidationInfo) -> str:
    return str(resolve_path(text, info))


def _check_reference(text: str, info: ValidationInfo) -> str:
    """The text itself is in no error: it may be the secret."""
    if text.startswith(FILE):
        return FILE + str(resolve_path(text.removeprefix(FILE), info))
    if not text.startswith(ENV) or not text.removeprefix(ENV):
        raise ValueError(
            "must be a reference to a secret and never the secret itself, since this file is kept "
            "and copied: write 'env:NAME' for a variable, or 'file:PATH' for a file that only you "
            "can read"
        )
    return text


def shaped(pattern: str, what: str) -> AfterValidator:
    """A check of a text's shape.

    Args:
        pattern: that all of it must match.
        what: it is, for people, with an example.
    """

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"must be {what}, not {_shown(text)!r}")
        return text

    return AfterValidator(check)


PathThere = Annotated[Text, AfterValidator(_check_path)]
"""A path in a container."""

PathHere = Annotated[Text, AfterValidator(_resolve)]
"""A path of this machine as a text, which is the key of a table."""

ImageName = Annotated[Text, AfterValidator(_check_image)]
"""An image of containers."""

ServiceUrl = Annotated[Text, AfterValidator(_check_url)]
"""The address of a service; ``https://`` is added where there is no scheme, no slash ends it."""

SecretReference = Annotated[Text, AfterValidator(_check_reference)]
"""``env:NAME`` or ``file:PATH``: what a secret is looked up by, each time that it is needed."""
