"""``nni.experiment`` and the modules below it, made of ours."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from dispatcher.nni import records
from dispatcher.nni.script import experiment, settings

#: NNI's module → ours, from which its names are taken.
_MODULES: dict[str, tuple[ModuleType, ...]] = {
    "nni.experiment": (experiment, settings, records),
    "nni.experiment.config": (settings,),
    "nni.experiment.config.algorithm": (settings,),
    "nni.experiment.config.experiment_config": (settings,),
    "nni.experiment.config.training_services": (settings,),
    "nni.experiment.data": (records,),
    "nni.experiment.experiment": (experiment,),
}


def install() -> None:
    """Make this process import them; ``nni`` itself is the real one if that is installed."""
    whole = importlib.import_module("nni")
    for name, ours in _MODULES.items():
        made = ModuleType(name)
        for module in ours:
            shown = {key: value for key, value in vars(module).items() if not key.startswith("_")}
            vars(made).update(shown)
        made.__path__ = []
        sys.modules[name] = made
    for name, value in (
        ("Experiment", experiment.Experiment),
        ("experiment", sys.modules["nni.experiment"]),
    ):
        setattr(whole, name, value)
