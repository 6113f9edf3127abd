"""References to secrets in ``trialEnvironment``: ``env:NAME`` and ``file:PATH``.

A reference is stored wherever a configuration is, its value nowhere: it is resolved when
a trial starts. ``literal:`` in front keeps a text that only looks like a reference, as
``literal:file:/data/runs`` does for MLflow's store. ``file:PATH#key/0/key`` is one value of a
YAML file: so a password can stay where NNI's files have it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from dispatcher.errors import ExperimentFileError
from dispatcher.experiment.problems import ExperimentFileErrors
from tuners.plain_json import JsonPath

ENV, FILE, LITERAL = "env:", "file:", "literal:"
#: Below these keys no reference is resolved: trials and tuners get the values as they are.
_NO_REFERENCES_BELOW = frozenset({"search_space", "class_args"})

_MOST_BYTES = 64 << 10  # a secret, not a data file; Linux takes 128 KiB in one variable
_MOST_YAML_BYTES = 4 << 20  # of NNI's files, which have more than the secret


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


def key_reference(file: str, path: JsonPath) -> str:
    """Return the reference to one value of a YAML file."""
    return f"{FILE}{file}#{'/'.join(map(str, path))}"


def _read(path: Path) -> str:
    whole, mark, keys = str(path).rpartition("#")
    if mark and not path.exists():
        return _read_value(Path(whole), keys.split("/"))
    value = _content(path, _MOST_BYTES)
    if "\0" in value:
        raise ValueError(f"refers to {path}, which holds no text of {_MOST_BYTES >> 10} KiB")
    return value.removesuffix("\n").removesuffix("\r")


def _content(path: Path, most: int) -> str:
    """Return the text of a file of so many bytes at most."""
    try:
        if path.is_fifo():
            raise ValueError(f"refers to {path}, which is a pipe, and is read more than once")
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise ValueError(f"refers to {path}, which holds no text of {most >> 10} KiB")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"refers to {path}, which cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"refers to {path}, which is not UTF-8 text") from error


def _read_value(path: Path, keys: list[str]) -> str:
    """One value of a YAML file. The text is not repeated in errors: it is a secret."""
    from dispatcher.experiment.yaml_text import read_source_of

    place = f"{path}, key {'.'.join(keys)}"
    try:
        text = _content(path, _MOST_YAML_BYTES)
        value: object = read_source_of(text, path, str(path), lax=True).value
    except ExperimentFileErrors as error:
        raise ValueError(f"refers to {path}, which is not YAML") from error
    for key in keys:
        if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, Mapping) and key in value:
            value = value[key]
        else:
            raise ValueError(f"refers to {place}, which is not there any more")
    if value is None or isinstance(value, (Mapping, list, bool)):
        raise ValueError(f"refers to {place}, which holds no text")
    return str(value)


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
    """Return the values of the references among these, to be kept out of logs. Reads files.

    A reference that leads nowhere is left out: :func:`resolve_environment` reports it.
    """
    values = []
    for text in variables.values():
        if text.startswith((ENV, FILE)):
            try:
                values.append(resolve_reference(text, environ))
            except ValueError:
                continue
    return values


def references_in(settings: object) -> Iterator[str]:
    """Yield the texts that are references, anywhere in settings."""
    if isinstance(settings, Mapping):
        settings = list(settings.values())
    if isinstance(settings, list | tuple):
        for each in settings:
            yield from references_in(each)
    elif isinstance(settings, str) and settings.startswith((ENV, FILE)):
        yield settings


def files_referred_to(settings: object) -> list[Path]:
    """Return the files that references name, anywhere in settings.

    They hold secrets, and so are not sent with the code. A choice of the search space that looks
    like a reference names data.
    """
    if isinstance(settings, Mapping):
        inner = (each for key, each in settings.items() if key not in _NO_REFERENCES_BELOW)
        return [path for each in inner for path in files_referred_to(each)]
    if isinstance(settings, list | tuple):
        return [path for each in settings for path in files_referred_to(each)]
    if not isinstance(settings, str) or not settings.startswith(FILE):
        return []
    text = settings.removeprefix(FILE)
    whole, mark, _ = text.rpartition("#")
    return [Path(os.path.expanduser(name)) for name in ([text, whole] if mark else [text])]
