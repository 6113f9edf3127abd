"""Other names of our modules, and an error for parts of NNI that this module lacks.

Names that begin with :data:`MISSING` raise ``ModuleNotFoundError``, so that code which can do
without them goes on; the text says what to do instead. Modules that trials import and leave unused
(:data:`HOLLOW`) can be imported; the text comes when one is used.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

from ._hollow import hollow_names

#: Modules of v0.5 and v1 that have moved since: name below ``nni`` → name below ``nni``.
ALIASES = {
    "msg_dispatcher_base": "runtime.msg_dispatcher_base",
    "msg_dispatcher": "runtime.msg_dispatcher",
    "protocol": "runtime.protocol",
    "env_vars": "runtime.env_vars",
    "runtime.common": "common",
    "runtime.log": "common",
    "runtime.recoverable": "recoverable",
    "runtime.tuner_command_channel": "runtime.protocol",
    "common.hpo_utils.optimize_mode": "utils",
}

_INSTALL = "install the real nni in the environment of this code: it will be used"

_SCRIPT = "run the script by 'bequeath run SCRIPT.py', or use dispatcher.Experiment"
_NOT_HERE = "is not part of the interfaces that bequeath has of NNI"
_OTHERWISE = "'from-nni' in bequeath's documentation lists what there is"

#: A part that is missing here → what to do.
MISSING = {
    "algorithms.compression": _INSTALL,
    "algorithms.hpo": "name the algorithm in the experiment file, or write a tuner of your own",
    "algorithms.feature_engineering": _INSTALL,
    "algorithms.nas": _INSTALL,
    "compression": _INSTALL,
    "constants": "'bequeath tuner list' shows the algorithms that are here",
    "experiment": _SCRIPT,
    "Experiment": _SCRIPT,
    "feature_engineering": _INSTALL,
    "multi_phase": "have each phase proposed as a trial of its own",
    "nas": _INSTALL,
    "nas_utils": _INSTALL,
    "package_utils": "algorithms are not registered: name the class in the experiment file",
    "platform": "call nni's own functions: get_next_parameter(), report_final_result()",
    "retiarii": _INSTALL,
    "tools": "use the command line 'bequeath'",
}

#: The missing parts that can be imported: a file that is launcher and trial in one needs no more.
HOLLOW = ("algorithms.hpo", "experiment", "tools")

#: Our own tuners under NNI's module names: module → (its class, our name).
BUILTIN = {
    "random_tuner": ("RandomTuner", "Random"),
    "gridsearch_tuner": ("GridSearchTuner", "GridSearch"),
    "batch_tuner": ("BatchTuner", "Batch"),
    "medianstop_assessor": ("MedianstopAssessor", "Medianstop"),
    "curvefitting_assessor": ("CurvefittingAssessor", "Curvefitting"),
}

#: As ``trial_runtime.nni_shim`` has it, which this file does not import.
_PROVIDER = "BEQUEATH_NNI_EXPERIMENT"

_ALGORITHMS = ("_tuner", "_advisor", "_assessor")

_PARTS = (
    "assessor",
    "common",
    "parameter_expressions",
    "runtime",
    "smartparam",
    "tuner",
    "typehint",
    "utils",
)

_DRAWN = ("choice", "randint", "uniform", "quniform", "loguniform", "qloguniform", "normal")
_MORE = ("qnormal", "lognormal", "qlognormal", "function_choice", "mutable_layer")
#: Functions that annotated code calls once it is rewritten.
_SMART = frozenset({*_DRAWN, *_MORE, "training_update"})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules that have no file of ours."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.provided: set[str] = set()  # made already, by a provider

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(f"{self.package}."):
            return None
        name = fullname[len(self.package) + 1 :]
        if name in ALIASES or name in BUILTIN or _builtin(name) in BUILTIN:
            return importlib.util.spec_from_loader(fullname, self, is_package=name in BUILTIN)
        if _missing(name) == "experiment" and _PROVIDER in os.environ:
            importlib.import_module(os.environ[_PROVIDER]).install()
            below = f"{self.package}.experiment"
            self.provided.update(each for each in sys.modules if each.startswith(below))
        if _missing(name) in HOLLOW:
            return importlib.util.spec_from_loader(fullname, self, is_package=True)
        # Without its name, or 'from nni import …' would raise another text.
        raise ModuleNotFoundError(f"{fullname} {_NOT_HERE}: {_instead(name)}")

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        name = spec.name[len(self.package) + 1 :]
        if name in ALIASES:
            return importlib.import_module(f"{self.package}.{ALIASES[name]}")
        return sys.modules[spec.name] if spec.name in self.provided else None

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ in self.provided:
            return
        name = module.__name__[len(self.package) + 1 :]
        short = _builtin(name)
        if short in BUILTIN and "." in name and importlib.util.find_spec("tuners"):
            own, ours = BUILTIN[short]
            tuners = importlib.import_module("tuners.builtin")
            find = tuners.builtin_assessor if own.endswith("Assessor") else tuners.builtin_tuner
            setattr(module, own, find(ours))
        elif name not in BUILTIN and _missing(name) in HOLLOW:
            sentence = f"{_NOT_HERE}: {_instead(name)}"
            vars(module)["__getattr__"] = hollow_names(module.__name__, sentence)


def _builtin(name: str) -> str:
    """``random_tuner`` of ``algorithms.hpo.random_tuner`` and ``random_tuner.random_tuner``."""
    above, _, short = name.rpartition(".")
    return short if above in ("algorithms.hpo", short) else ""


def install(package: str) -> None:
    """Let imports below ``package`` find these names."""
    if not any(isinstance(each, _Finder) and each.package == package for each in sys.meta_path):
        sys.meta_path.append(_Finder(package))


def why_not(package: str, name: str) -> str:
    """The error text for an attribute that the top module lacks."""
    return f"module {package!r}, as bequeath has it, has no attribute {name!r}: {_instead(name)}"


def _instead(name: str) -> str:
    """The advice for code that needs a missing name below the package."""
    return MISSING.get(_missing(name), _OTHERWISE)


def _missing(name: str) -> str:
    """The entry of :data:`MISSING` to which a name belongs; empty if none."""
    if name.partition(".")[0].endswith(_ALGORITHMS):  # nni.<name>_tuner.<name>_tuner of v1
        return "algorithms.hpo"
    return next((missing for missing in MISSING if f"{name}.".startswith(f"{missing}.")), "")


def part(package: str, name: str) -> Any:
    """A module of ours below the top one, for code that has imported no more than that.

    Raises:
        AttributeError: there is none; what to do instead.
    """
    if name in _SMART:
        return getattr(importlib.import_module(f"{package}.smartparam"), name)
    if name in _PARTS or name in HOLLOW:
        return importlib.import_module(f"{package}.{name}")
    raise AttributeError(why_not(package, name))
