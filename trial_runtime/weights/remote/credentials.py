"""Options of a remote root: secrets in them are named, and looked up where they are needed.

``env:NAME`` is a variable of the process that opens the root (the head, or an agent),
``file:PATH`` a file of its host. What they stand for is written nowhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from trial_runtime.weights.remote.address import BadRoot

_ENV, _FILE = "env:", "file:"
_SECRET: Final = re.compile(
    r"(?i)(secret|token|passw|passphrase|credential|private|account_?key|api_?key|sas|conn.*string)"
)
_MOST_BYTES: Final = 64 << 10

Options = Mapping[str, Any]


def is_reference(value: object) -> bool:
    """Whether a value is a reference to a variable or file that has the value."""
    return isinstance(value, str) and value.startswith((_ENV, _FILE))


def written_out(options: Options) -> str | None:
    """The first key that names a secret and carries the secret itself; None if all is well."""
    for path, value in _leaves(options):
        name = path.rpartition(".")[2]
        if isinstance(value, str) and _SECRET.search(name) and not is_reference(value):
            return path
    return None


def resolve(options: Options, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The options with all references looked up. Reads files.

    Raises:
        BadRoot: a reference leads nowhere; names the key, not the value.
    """
    known = os.environ if environ is None else environ

    def value_of(path: str, value: object) -> object:
        return _look_up(path, str(value), known) if is_reference(value) else value

    return _mapped(options, value_of)


def secrets(options: Options, environ: Mapping[str, str] | None = None) -> list[str]:
    """The secrets that the references stand for, to be kept out of logs; references that lead
    nowhere are passed over."""
    known = os.environ if environ is None else environ
    found = []
    for path, value in _leaves(options):
        if is_reference(value):
            try:
                found.append(_look_up(path, value, known))
            except BadRoot:
                continue
    return found


def anchored(options: Options, resolve_path: Callable[[str], str]) -> dict[str, Any]:
    """The options with relative ``file:`` references made absolute. ``~`` stays: each host has
    its own."""

    def value_of(_path: str, value: object) -> object:
        if isinstance(value, str) and value.startswith(_FILE):
            path = value.removeprefix(_FILE)
            return value if path.startswith("~") else _FILE + resolve_path(path)
        return value

    return _mapped(options, value_of)


def _look_up(path: str, text: str, environ: Mapping[str, str]) -> str:
    if text.startswith(_ENV):
        name = text.removeprefix(_ENV)
        if name not in environ:
            raise BadRoot(
                f"weightsRootOptions.{path} refers to the variable {name!r}, which is not set here",
                hint=f"export {name} before bequeath starts",
            )
        return environ[name]
    file_path = os.path.expanduser(text.removeprefix(_FILE))
    try:
        with open(file_path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
        value = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise BadRoot(
            f"weightsRootOptions.{path} refers to {file_path}, which cannot be read: {why}"
        ) from error
    if len(content) > _MOST_BYTES:
        raise BadRoot(f"weightsRootOptions.{path} refers to {file_path}, which is no short text")
    return value.rstrip("\r\n")


def _mapped(
    options: Options, value_of: Callable[[str, object], object], above: str = ""
) -> dict[str, Any]:
    return {key: _mapped_value(value, value_of, f"{above}{key}") for key, value in options.items()}


def _mapped_value(value: object, value_of: Callable[[str, object], object], path: str) -> object:
    if isinstance(value, Mapping):
        return _mapped(value, value_of, f"{path}.")
    if isinstance(value, (list, tuple)):
        found = (_mapped_value(each, value_of, f"{path}[{n}]") for n, each in enumerate(value))
        return list(found)
    return value_of(path, value)


def _leaves(options: Options) -> list[tuple[str, Any]]:
    """All values, each with its path."""
    found: list[tuple[str, Any]] = []
    _mapped(options, lambda path, value: found.append((path, value)))
    return found
