"""References to secrets in ``trialEnvironment``: ``env:NAME`` and ``file:PATH``.

A reference is stored wherever a configuration is, its value nowhere: it is resolved when
a trial starts. ``literal:`` in front keeps a text that only looks like a reference, as
``literal:file:/data/runs`` does for MLflow's store.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from dispatcher.errors import ExperimentFileError

ENV, FILE, LITERAL = "env:", "file:", "literal:"
MASKED = "[masked]"
_SECRET_NAME = re.compile(r"(?i)(secret|token|passw|credential|api_?key|private|_key$)")
_MOST_BYTES = 64 << 10  # a secret, not a data file; Linux takes 128 KiB in one variable


def resolve_reference(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Return what a value of ``trialEnvironment`` stands for; one trailing newline is dropped.

    Raises:
        ValueError: the variable is not set, or the file cannot be read as a short text.
    """
    if text.startswith(LITERAL):
        return text.removeprefix(LITERAL)
    if text.startswith(ENV):
        name = text.removeprefix(ENV)
        value = (os.environ if environ is None else environ).get(name)
        if value is None:
            raise ValueError(f"refers to the variable {name!r}, which is not set here")
        return value
    if text.startswith(FILE):
        return _read(Path(text.removeprefix(FILE)))
    return text


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        value = content.decode()
    except OSError as error:
        raise ValueError(f"refers to {path}, which cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"refers to {path}, which is not UTF-8 text") from error
    if len(content) > _MOST_BYTES or "\0" in value:
        raise ValueError(f"refers to {path}, which holds no text of {_MOST_BYTES >> 10} KiB")
    return value.removesuffix("\n").removesuffix("\r")


def resolve_environment(
    variables: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of a trial with all references resolved. Reads files.

    Raises:
        ExperimentFileError: a reference leads nowhere; ``where`` names the variable.
    """
    resolved = {}
    for name, text in variables.items():
        try:
            resolved[name] = resolve_reference(text, environ)
        except ValueError as error:
            where = f"trialEnvironment.{name}"
            hint = f"write '{LITERAL}{text}' if the text itself is meant"
            raise ExperimentFileError(f"'{name}' {error}", hint=hint, where=where) from error
    return resolved


def secret_values(
    variables: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> list[str]:
    """What the references among these stand for, to be kept out of logs; no error if a
    reference leads nowhere, which is said elsewhere. Reads files."""
    found = []
    for text in variables.values():
        if text.startswith((ENV, FILE)):
            try:
                found.append(resolve_reference(text, environ))
            except ValueError:
                continue
    return found


def shown_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables as they may be shown: references as they are, and what is written out
    under the name of a secret masked."""
    return {
        name: MASKED if _SECRET_NAME.search(name) and not text.startswith((ENV, FILE)) else text
        for name, text in variables.items()
    }
