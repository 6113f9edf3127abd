"""Parameters as the programs of others take them: as texts.

Such a text stands in an argument, in a variable, or in place of ``${trialParameters.NAME}``, which
is how Katib names a parameter in a command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

#: A parameter in a command, or in the value of a variable.
TEMPLATE = re.compile(r"\$\{trialParameters\.([^{}\n]+)\}")

#: The beginning of the variables that hold parameters.
PREFIX = "BEQUEATH_PARAMETER_"

#: Names the JSON file of a trial's parameters; :func:`trial_runtime.get_parameters` reads it, too,
#: where a script is run by hand.
FILE_VARIABLE = "BEQUEATH_PARAMETERS"

_NO_NAME = re.compile(r"[^A-Za-z0-9_]")

#: Up to here a float holds each whole number.
_EXACT = 1 << 53


class NoSuchParameter(LookupError):
    """Raised where a text names a parameter that a trial does not have."""


def variable_of(name: str) -> str:
    """The variable that holds the parameter of this name.

    >>> variable_of("num-layers")
    'BEQUEATH_PARAMETER_num_layers'
    """
    return PREFIX + _NO_NAME.sub("_", name)


def text_of(value: Any) -> str:
    """A value as a command line has it: whole numbers without a point, objects as JSON.

    >>> [text_of(value) for value in (0.5, 16.0, True, "adam", [1, 2])]
    ['0.5', '16', 'true', 'adam', '[1, 2]']
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def flat(parameters: Any) -> dict[str, str]:
    """The texts of all parameters by name.

    A branch of a nested choice gives its name, and its own parameters stand beside it. Parameters
    that are no mapping have no names.

    >>> flat({"layer": {"_name": "conv", "size": 3}, "lr": 0.1})
    {'layer': 'conv', 'lr': '0.1', 'size': '3'}
    """
    texts: dict[str, str] = {}
    if not isinstance(parameters, Mapping):
        return texts
    branches = []
    for name, value in parameters.items():
        if isinstance(value, Mapping) and "_name" in value:
            branches.append({key: inner for key, inner in value.items() if key != "_name"})
            value = value["_name"]
        texts[str(name)] = text_of(value)
    for branch in branches:
        for name, text in flat(branch).items():
            texts.setdefault(name, text)
    return texts


def filled(text: str, texts: Mapping[str, str], optional: Collection[str] = ()) -> str:
    """A text with parameters in place of their names.

    Args:
        text: with ``${trialParameters.NAME}`` in it.
        texts: as :func:`flat` returns them.
        optional: names that stand for nothing where a trial lacks them.

    Raises:
        NoSuchParameter: another one is lacking.
    """

    def put(match: re.Match[str]) -> str:
        name = match[1]
        if name not in texts and name not in optional:
            raise NoSuchParameter(name)
        return texts.get(name, "")

    return TEMPLATE.sub(put, text)
