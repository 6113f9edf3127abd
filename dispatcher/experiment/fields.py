"""The kinds of value that keys of an experiment file take, as annotated types.

Types are strict where YAML would guess: ``trialConcurrency: true`` is not 1. Each kind
raises one plain sentence, which :mod:`dispatcher.experiment.sentences` puts a key in front of.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    Strict,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel

from dispatcher.experiment.quantities import parse_duration, parse_size
from dispatcher.experiment.references import FILE

BASE_FOLDER = "base_folder"
"""The key of the validation context that holds the folder relative paths start from."""


MOST = 2**53
"""Largest whole number: what JSON, msgpack, SQLite and a float can all hold exactly."""


class Section(BaseModel):
    """Base of every part of an experiment file: frozen, closed, camelCase outside."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        validate_default=True,
        allow_inf_nan=False,
        defer_build=True,
        hide_input_in_errors=True,  # a value may be a secret, which no log may hold
    )

    #: JSON Schema of the shorter way to write this section, if it has one that editors may offer.
    short_schema: ClassVar[Mapping[str, Any] | None] = None

    #: Other spellings of keys that are read as well → the key.
    other_names: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        return cls.read_short_form(value)

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Turn a shorter way to write this section into its keys; the rest comes back as it is."""
        return value


class ChosenSection(ABC):
    """An annotation of a key whose section the file itself chooses among several classes."""

    @abstractmethod
    def classes(self) -> Sequence[type[Section]]:
        """Return the classes that are described wherever keys are."""
        ...

    @abstractmethod
    def class_for(self, value: Any) -> type[Section]:
        """Return the class for a value of the file, whatever it is."""
        ...


def read_switch(value: object) -> object:
    """Read YAML 1.1's yes/no/on/off, which YAML 1.2 delivers as text."""
    if isinstance(value, str):
        return {
            "yes": True,
            "on": True,
            "true": True,
            "no": False,
            "off": False,
            "false": False,
        }.get(value.lower(), value)
    return value


def _positive_duration(value: object) -> float:
    seconds = parse_duration(value)
    if seconds == 0:
        raise ValueError("must be longer than nothing")
    return seconds


def _positive_size(value: object) -> int:
    size = parse_size(value)
    if size == 0:
        raise ValueError("must be more than nothing")
    return size


def resolve_path(value: object, info: ValidationInfo) -> Path:
    """Make a path absolute: ``~`` expanded, relative ones below the file's folder.

    Links are left alone, so that a path can be shown as its author wrote it.
    """
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise ValueError(f"must be a path, not {value!r}")
    text = os.fspath(value)
    if not isinstance(text, str) or "\0" in text:
        raise ValueError(f"must be a path, not {value!r}")
    if "://" in text:
        raise ValueError(f"must be a folder or file of this machine's file systems, not {text!r}")
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"names a home folder that does not exist: {text!r}") from error
    base: Path = (info.context or {}).get(BASE_FOLDER) or Path.cwd()
    return Path(os.path.normpath(base / path))


def absolute_reference(text: str, info: ValidationInfo) -> str:
    """Make the path in ``file:PATH`` absolute; any other text comes back as it is.

    The process that reads the file may have another working directory: a head in the background.
    """
    if not text.startswith(FILE):
        return text
    return FILE + str(resolve_path(text.removeprefix(FILE), info))


def choice_reader(*names: str) -> Callable[[object], object]:
    """Return a reader that finds the canonical spelling, whatever case and separators say."""
    known = {fold_word(name): name for name in names}

    def read(value: object) -> object:
        return known.get(fold_word(value), value) if isinstance(value, str) else value

    return read


def fold_word(word: str) -> str:
    """Fold a word to what all its spellings share: no case, no ``_``, ``-`` or blanks."""
    return word.replace("_", "").replace("-", "").replace(" ", "").lower()


KINDS = ("duration", "size", "path")
"""Titles in the JSON Schema; the generated reference calls these kinds of value so."""

_DURATION_SCHEMA: dict[str, Any] = {
    "title": "duration",
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^\s*([0-9.]+\s*(ms|s|m|h|d|w)?\s*)+$"},
    ],
}
_SIZE_SCHEMA: dict[str, Any] = {
    "title": "size",
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": r"^\s*[0-9.]+\s*([kKmMgGtT]?[iI]?[bB]?)\s*$"},
    ],
}


def _check_command(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character, which no command can")
    return text


Text = Annotated[str, Strict(), Field(min_length=1)]
Command = Annotated[Text, AfterValidator(_check_command)]
Switch = Annotated[bool, Strict(), BeforeValidator(read_switch)]
Count = Annotated[int, Strict(), Field(ge=1, le=MOST)]
CountOrZero = Annotated[int, Strict(), Field(ge=0, le=MOST)]
Duration = Annotated[float, PlainValidator(_positive_duration), WithJsonSchema(_DURATION_SCHEMA)]
Grace = Annotated[float, PlainValidator(parse_duration), WithJsonSchema(_DURATION_SCHEMA)]
Size = Annotated[int, PlainValidator(_positive_size), WithJsonSchema(_SIZE_SCHEMA)]
SizeOrZero = Annotated[int, PlainValidator(parse_size), WithJsonSchema(_SIZE_SCHEMA)]
ResolvedPath = Annotated[
    Path, PlainValidator(resolve_path), WithJsonSchema({"type": "string", "title": "path"})
]


_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def _read_function(value: object) -> object:
    if isinstance(value, str) and not _FUNCTION.fullmatch(value):
        raise ValueError(f"must be written as 'module:function', not {value!r}")
    return value


def _check_variable(name: str) -> str:
    if "=" in name or "\0" in name:
        raise ValueError(f"has the name {name!r}, which no environment variable can have")
    return name


def _read_variable(value: object, info: ValidationInfo) -> object:
    """Read ``OMP_NUM_THREADS: 1`` as text; 1.10 and yes are refused, being ambiguous."""
    if isinstance(value, str):
        value = absolute_reference(value, info)
        if "\0" in value:
            raise ValueError("holds a NUL character, which no environment variable can")
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _read_without_result(value: object) -> object:
    if isinstance(value, str) and fold_word(value) in ("ignore", "none", "fail"):
        return "fail" if fold_word(value) == "fail" else "ignore"
    if value is None:
        return "ignore"
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
        if number - number == 0:  # neither infinite nor NaN
            return number
    raise ValueError(f"must be 'ignore', 'fail' or the number to take instead, not {value!r}")


FunctionName = Annotated[Text, BeforeValidator(_read_function)]
VariableName = Annotated[Text, AfterValidator(_check_variable)]
VariableText = Annotated[str, Strict(), BeforeValidator(_read_variable)]
VariablesThere = Annotated[
    dict[VariableName, VariableText],
    Field(
        description="Environment variables there, beside `trialEnvironment`; `env:NAME` and "
        "`file:PATH` are resolved on this machine."
    ),
]
WithoutResult = Annotated[
    Literal["ignore", "fail"] | float,
    PlainValidator(_read_without_result),
    WithJsonSchema({"anyOf": [{"enum": ["ignore", "fail"]}, {"type": "number"}]}),
]
