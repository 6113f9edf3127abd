"""Shapes of long answers: the fields that are read, so that the others are passed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

#: ``TypedDict`` as a function, for names that are known when it is called.
_typed_dict: Any = TypedDict


def list_of_objects(*fields: str, **inner: Sequence[str]) -> Any:
    """Return the shape of a list of objects, for :meth:`HttpClient.ask`. Each value that is read
    may be anything, so what makes no sense comes as it is.

    Args:
        fields: of each object, that are read whole.
        inner: fields that are objects, or null, with those of their fields that are read.
    """
    shapes = {name: _object(name, dict.fromkeys(read, Any)) | None for name, read in inner.items()}
    return list[_object("row", {**dict.fromkeys(fields, Any), **shapes})]  # type: ignore[misc]


def _object(name: str, fields: dict[str, Any]) -> Any:
    return _typed_dict(name, fields, total=False)
