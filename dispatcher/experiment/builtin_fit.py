"""Check whether a built-in tuner takes its arguments and the search space, by building it.

The tuner is built as the tuner host will build it, and discarded: constructors of built-in tuners
only check and prepare. No code of a user or of a plug-in is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dispatcher.experiment.algorithm import AlgorithmConfig
from dispatcher.experiment.plain_json import JsonPath
from tuners.builtin import make_assessor, make_builtin
from tuners.errors import TunerArgumentError


def misfits(
    key: str, algorithm: AlgorithmConfig, search_space: Mapping[str, Any]
) -> Iterator[tuple[JsonPath, str, str]]:
    """Yield the place, what is wrong there, and a hint; nothing if all fits.

    Args:
        key: ``tuner`` or ``assessor``.
        algorithm: names a built-in one.
        search_space: as the file has it, readable.
    """
    assert algorithm.name is not None
    try:
        if key == "assessor":
            make_assessor(algorithm.name, algorithm.class_args)
            return
        tuner = make_builtin(algorithm.name, algorithm.class_args)
    except TunerArgumentError as error:
        at = _argument(error.message, algorithm.class_args)
        place = (
            (key, "classArgs", at) if at else (key, "classArgs" if algorithm.class_args else "name")
        )
        yield place, f"does not fit: {error.message.rstrip('.')}", error.hint
        return
    refusal = tuner.handles(dict(search_space))
    if refusal:
        yield ("searchSpace",), f"does not suit {algorithm.name}: {refusal.rstrip('.')}", ""


def _argument(message: str, class_args: Mapping[str, Any]) -> str | None:
    """The argument that a message is about, if it names one that was given."""
    named = [name for name in class_args if f"argument {name!r}" in message]
    return named[0] if named else None
