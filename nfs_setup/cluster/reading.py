"""Sections of an inventory, read strictly: unknown keys are named with what was meant.

Plain values come in with a function that knows where each stood, so that the reader of
the file (YAML or anything else) stays outside. As in experiment files, neither case nor underscores
of keys are looked at, and reading goes on after an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Union

from nfs_setup.errors import RequestRefused

KeyPath = tuple[Union[str, int], ...]

#: The place (``file:line:column``) of a value, or (True) of its key.
Places = Callable[[KeyPath, bool], str]

_SWITCHES = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}


class InventoryRefused(RequestRefused):
    """Raised with everything that is wrong with an inventory, in ``errors``."""

    def __init__(self, errors: list[RequestRefused]) -> None:
        self.errors = tuple(errors)
        first = errors[0]
        super().__init__(first.message, hint=first.hint, where=first.where)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


def text(value: Any) -> str:
    """Read a text, or a number that YAML made of one (``version: 4.2``, ``owner: 1000``)."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("is no text")
    if any(ord(character) < 0x20 for character in str(value)):
        raise ValueError("holds a control character")
    return str(value)


def quoted(value: Any) -> str:
    """Read a text that YAML must not have read as a number: 0o2770 would come as 1528."""
    if not isinstance(value, str):
        raise ValueError("is no text; write it in quotes, as '2770'")
    return value


def switch(value: Any) -> bool:
    """Read true or false; yes, no, on and off, too."""
    found = _SWITCHES.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ValueError("is neither true nor false")
    return found


def number(value: Any) -> int:
    """Read a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("is no whole number")
    return value


def port(value: Any) -> int:
    """Read a TCP port."""
    if not 1 <= number(value) <= 65535:
        raise ValueError("is no port: 1 to 65535")
    return number(value)


def reference(value: Any) -> str:
    """Read a reference to a secret; a secret itself would be shown, and copied with the file."""
    found = text(value)
    if not found.startswith(("env:", "file:")) or found in ("env:", "file:"):
        raise ValueError("is no reference; write env:NAME or file:PATH, never the password itself")
    return found


def anything(value: Any) -> Any:
    """Return a value as it is: the caller reads it."""
    return value


Kind = Callable[[Any], Any]


class Reader:
    """Reads sections and collects what is wrong with them."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.errors: list[RequestRefused] = []

    def where(self, path: KeyPath) -> str:
        """Return the place of a value."""
        return self._places(path, False)

    def refuse(self, path: KeyPath, message: str, hint: str = "", *, key: bool = False) -> None:
        """Note an error and go on.

        Args:
            path: the keys that lead to the value.
            message: what is wrong with it.
            hint: what to do about it.
            key: whether the key is wrong, not the value.
        """
        self.errors.append(RequestRefused(message, hint=hint, where=self._places(path, key)))

    def section(self, value: Any, path: KeyPath, known: Mapping[str, Kind]) -> dict[str, Any]:
        """Return values by their proper keys; what is wrong is noted and left out.

        Args:
            value: the section as it was read, which may be anything.
            path: the keys that lead to it.
            known: its keys, each with the check of its value.
        """
        name = f" in {str(path[-1])!r}" if path and isinstance(path[-1], str) else ""
        if not isinstance(value, Mapping):
            self.refuse(path, f"is no section{name}", f"its keys are {', '.join(known)}")
            return {}
        folded = {_fold(key): key for key in known}
        found: dict[str, Any] = {}
        for written, one in value.items():
            at = (*path, str(written))
            key = folded.get(_fold(str(written)))
            if key is None:
                near = difflib.get_close_matches(_fold(str(written)), folded, 1, 0.6)
                meant = f"; did you mean {folded[near[0]]!r}?" if near else ""
                hint = "" if near else f"keys here are {', '.join(known)}"
                self.refuse(at, f"unknown key {str(written)!r}{name}{meant}", hint, key=True)
            elif key in found:
                self.refuse(at, f"{key!r} is given twice", "keep one spelling", key=True)
            else:
                try:
                    found[key] = known[key](one)
                except ValueError as error:
                    self.refuse(at, f"{key!r} {error}")
        return found


def camel(name: str) -> str:
    """Return ``read_only`` as it is written in a file: ``readOnly``."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _fold(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()
