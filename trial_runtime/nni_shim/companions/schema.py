"""The part of the library ``schema``, a dependency of NNI, that tuners modelled on NNI's own use.

Only tuner hosts look in this folder, last of all, so that an installed one wins. A specification
is a type, a function that returns true or false, a value, a dict or a list of such, or one of the
classes below; :meth:`Schema.validate` returns data that fit, and raises an error that says why not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = [
    "And",
    "Const",
    "Forbidden",
    "Optional",
    "Or",
    "Regex",
    "Schema",
    "SchemaError",
    "SchemaMissingKeyError",
    "SchemaWrongKeyError",
    "Use",
]

_NOTHING = object()


class SchemaError(Exception):
    """Raised when data do not fit."""

    @property
    def code(self) -> str:
        """The sentence."""
        return str(self)


class SchemaMissingKeyError(SchemaError):
    """Raised when a dict lacks a key."""


class SchemaWrongKeyError(SchemaError):
    """Raised when a dict has an unknown key."""


class Schema:
    """A specification. ``error`` replaces the text of an error about data that do not fit."""

    def __init__(self, schema: Any, error: Any = None, ignore_extra_keys: bool = False) -> None:
        self.schema = schema
        self.error = error
        self.ignore_extra_keys = ignore_extra_keys

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.schema!r})"

    def validate(self, data: Any, **_more: Any) -> Any:
        """Return data that fit, with defaults filled in. Raises :class:`SchemaError`."""
        try:
            return self._fitted(data)
        except SchemaError:
            if self.error is None:
                raise
            raise SchemaError(self._own_text(data)) from None

    def is_valid(self, data: Any, **_more: Any) -> bool:
        """Whether data fit."""
        try:
            self.validate(data)
        except SchemaError:
            return False
        return True

    def _own_text(self, data: Any) -> str:
        try:
            return str(self.error).format(data)
        except (LookupError, ValueError):  # braces that mean themselves
            return str(self.error)

    def _fitted(self, data: Any) -> Any:
        wanted = self.schema
        if isinstance(wanted, dict):
            return self._fitted_dict(wanted, data)
        if isinstance(wanted, (list, tuple, set, frozenset)):
            _demand(isinstance(data, type(wanted)), f"{data!r} should be a {type(wanted).__name__}")
            return type(wanted)(_first(wanted, each) for each in data)
        return _one(wanted, data)

    def _fitted_dict(self, wanted: dict[Any, Any], data: Any) -> dict[Any, Any]:
        _demand(isinstance(data, dict), f"{data!r} should be a dict")
        fitted: dict[Any, Any] = {}
        met: set[int] = set()
        # Keys that are named go before those that are described.
        order = sorted(enumerate(wanted.items()), key=lambda each: _described(each[1][0]))
        for key, value in data.items():
            match = next(((n, k, v) for n, (k, v) in order if _fits(k, key)), None)
            if match is not None:
                met.add(match[0])
                fitted[key] = _in(key, match[2], value)
            elif not self.ignore_extra_keys:
                raise SchemaWrongKeyError(f"Wrong key {key!r} in {data!r}")
        for place, (key, _) in enumerate(wanted.items()):
            if place in met:
                continue
            if not isinstance(key, Optional) and not _described(key):
                raise SchemaMissingKeyError(f"Missing key: {key!r}")
            default = getattr(key, "default", _NOTHING)
            if default is not _NOTHING:
                fitted[key.schema] = default() if callable(default) else default
        return fitted


class Optional(Schema):
    """A key that may be missing."""

    def __init__(self, schema: Any, default: Any = _NOTHING, **more: Any) -> None:
        super().__init__(schema, **more)
        if default is not _NOTHING:
            self.default = default


class Forbidden(Schema):
    """A key that must be missing."""


class _Several(Schema):
    def __init__(self, *wanted: Any, error: Any = None, **_more: Any) -> None:
        super().__init__(wanted, error)


class And(_Several):
    """Several specifications that are applied one after another."""

    def _fitted(self, data: Any) -> Any:
        for each in self.schema:
            data = _one(each, data)
        return data


class Or(_Several):
    """Several specifications of which the first that fits counts."""

    def _fitted(self, data: Any) -> Any:
        return _first(self.schema, data)


class Use(Schema):
    """A function that converts the data."""

    def _fitted(self, data: Any) -> Any:
        try:
            return self.schema(data)
        except Exception as error:  # noqa: BLE001 - that it raises is how it says no
            raise SchemaError(f"{self.schema!r}({data!r}) raised {error!r}") from None


class Const(Schema):
    """A specification that checks data, and returns them unchanged."""

    def _fitted(self, data: Any) -> Any:
        super()._fitted(data)
        return data


class Regex(Schema):
    """A text that has a match."""

    def _fitted(self, data: Any) -> Any:
        matches = isinstance(data, str) and re.search(self.schema, data)
        _demand(bool(matches), f"{data!r} does not match {self.schema!r}")
        return data


def _one(wanted: Any, data: Any) -> Any:
    """The data as one specification of any kind returns them."""
    if hasattr(wanted, "validate"):
        return wanted.validate(data)
    if isinstance(wanted, (dict, list, tuple, set, frozenset)):
        return Schema(wanted).validate(data)
    if isinstance(wanted, type):
        _demand(isinstance(data, wanted), f"{data!r} should be instance of {wanted.__name__!r}")
    elif callable(wanted):
        _demand(_says_yes(wanted, data), f"{wanted!r}({data!r}) should evaluate to True")
    else:
        _demand(wanted == data, f"{wanted!r} does not match {data!r}")
    return data


def _says_yes(function: Any, data: Any) -> bool:
    try:
        return bool(function(data))
    except Exception as error:  # noqa: BLE001 - that it raises is how it says no
        raise SchemaError(f"{function!r}({data!r}) raised {error!r}") from None


def _first(wanted: Iterable[Any], data: Any) -> Any:
    reason = ""
    for each in wanted:
        try:
            return _one(each, data)
        except SchemaError as error:
            reason = reason or str(error)
    raise SchemaError(reason or f"{data!r} should not be there")


def _in(key: Any, wanted: Any, value: Any) -> Any:
    try:
        return _one(wanted, value)
    except SchemaError as error:
        if getattr(wanted, "error", None) is not None:
            raise
        raise SchemaError(f"Key {key!r} error: {error}") from None


def _fits(wanted: Any, key: Any) -> bool:
    inner = wanted.schema if isinstance(wanted, (Optional, Forbidden)) else wanted
    if isinstance(wanted, Forbidden) and Schema(inner).is_valid(key):
        raise SchemaWrongKeyError(f"Forbidden key encountered: {key!r}")
    return Schema(inner).is_valid(key)


def _described(key: Any) -> bool:
    """Whether a key is one of many, and so may be missing."""
    inner = key.schema if isinstance(key, (Optional, Forbidden)) else key
    return isinstance(key, Forbidden) or isinstance(inner, (type, Schema)) or callable(inner)


def _demand(fits: bool, sentence: str) -> None:
    if not fits:
        raise SchemaError(sentence)
