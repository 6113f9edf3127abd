"""Class arguments as a file writes them: checked against the constructor, with suggestions."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping
from typing import Any

from tuners.errors import TunerArgumentError

#: Parts of annotations of arguments that no file can give.
_CODE = ("Callable", "FrozenTrial")

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def check_class_args(owner: type, class_args: Mapping[str, Any]) -> None:
    """Checks that a constructor takes these arguments and misses none.

    Raises:
        TunerArgumentError: unknown argument (names the nearest) or a missing one.
    """
    parameters = inspect.signature(owner).parameters.values()
    swallows = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    if swallows and not hasattr(owner, "more_arguments"):
        return
    legal = legal_arguments(owner)
    for name in class_args:
        if name not in legal:
            near = difflib.get_close_matches(name, legal, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"It takes: {_listed(legal)}."
            raise TunerArgumentError(f"{owner.__name__} takes no argument {name!r}.", hint)
    for parameter in parameters:
        needed = parameter.default is parameter.empty and parameter.name in legal
        if needed and parameter.name not in class_args:
            raise TunerArgumentError(
                f"{owner.__name__} needs the argument {parameter.name!r}.",
                f"Add {parameter.name} under classArgs.",
            )


def is_code(parameter: inspect.Parameter) -> bool:
    """Whether an argument is a function, or an object of a program, which no file can give."""
    return any(word in str(parameter.annotation) for word in _CODE)


def legal_arguments(owner: type) -> list[str]:
    """The names of the arguments that a constructor takes by keyword, or passes on."""
    parameters = inspect.signature(owner).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    own = [parameter.name for parameter in parameters if parameter.kind in kinds]
    theirs = legal_arguments(owner.more_arguments()) if hasattr(owner, "more_arguments") else []
    return [*own, *(name for name in theirs if name not in own)]


def spelled(owner: type, class_args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with ``populationSize`` taken for ``population_size``, where that fits."""
    legal = legal_arguments(owner)
    settled: dict[str, Any] = {}
    for name, value in class_args.items():
        snake = _HUMP.sub("_", name).lower()
        settled[snake if name not in legal and snake in legal else name] = value
    return settled


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "none"
