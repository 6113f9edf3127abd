"""Variables of this process that a configuration names, for an agent in another environment."""

from __future__ import annotations

import os
from collections.abc import Mapping


def named_variables(values: object) -> dict[str, str]:
    """The variables that references (``env:NAME``) among these values name, as they are here; one
    that is not set is left out."""
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, list | tuple):
        return {k: v for each in values for k, v in named_variables(each).items()}
    if not (isinstance(values, str) and values.startswith("env:")):
        return {}
    name = values.removeprefix("env:")
    return {name: os.environ[name]} if name in os.environ else {}
