"""``import bequeath as bq`` in a trial on a machine that has nothing but ``trial_runtime``.

The names are those of :mod:`trial_runtime`, and of :mod:`trial_runtime.morphism`.
"""

from __future__ import annotations

import importlib


def __getattr__(name: str) -> object:
    if name == "morphism":
        return importlib.import_module("trial_runtime.morphism")
    runtime = importlib.import_module("trial_runtime")
    if name not in runtime.__all__:
        raise AttributeError(
            f"module 'bequeath' has no attribute {name!r} here: this machine has only what "
            "trials use"
        )
    value: object = getattr(runtime, name)
    return value
