"""Kinds of value that only keys about trials take: a trial's function, its environment."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    PlainValidator,
    Strict,
    ValidationInfo,
    WithJsonSchema,
)

from dispatcher.experiment.fields import Text, absolute_reference, fold_word

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
WithoutResult = Annotated[
    Literal["ignore", "fail"] | float,
    PlainValidator(_read_without_result),
    WithJsonSchema({"anyOf": [{"enum": ["ignore", "fail"]}, {"type": "number"}]}),
]
