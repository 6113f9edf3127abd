"""Dataclasses of JSON that comes from another machine, which is not trusted with types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from nfs_setup.errors import RequestRefused

_T = TypeVar("_T")

#: By the type that a field is written with.
_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
}


def made_of(form: type[_T], document: Any, where: str) -> _T:
    """Read an object of JSON as a dataclass of texts, numbers, switches, and lists or objects of
    these. A field with a default may be missing.

    Args:
        form: the dataclass.
        document: the object, as it was decoded.
        where: what it is, for errors.

    Raises:
        RequestRefused: if it is none, or has other fields, or values of other types.
    """
    if not isinstance(document, Mapping):
        raise RequestRefused("is no JSON object", where=where)
    kinds = {field.name: str(field.type) for field in fields(form)}  # type: ignore[arg-type]
    values = {}
    for name, value in document.items():
        if name not in kinds:
            raise RequestRefused(f"has no key {name!r}", where=where)
        values[name] = _checked(name, kinds[name], value, where)
    try:
        return form(**values)
    except TypeError as error:
        raise RequestRefused(str(error).partition("() ")[2], where=where) from None


def _checked(name: str, kind: str, value: Any, where: str) -> Any:
    outer, _, inner = kind.partition("[")
    parts = inner.rstrip("]").split(", ")
    if outer == "tuple":
        good = isinstance(value, (list, tuple)) and all(_is(parts[0], one) for one in value)
        value = tuple(value) if good else value
    elif outer == "dict":
        good = isinstance(value, Mapping) and all(_is(parts[1], one) for one in value.values())
    else:
        good = _is(kind, value)
    if not good:
        text = {"tuple": "list of texts", "dict": "object of such values"}.get(outer, kind)
        raise RequestRefused(f"{name} is no {text}", where=where)
    return value


def _is(kind: str, value: Any) -> bool:
    """By the exact type: true is no number."""
    return type(value) in _KINDS[kind]
