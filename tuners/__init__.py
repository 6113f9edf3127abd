"""Tuners: the base class, its errors, and the built-in search algorithms.

Importing this package loads neither numpy nor an algorithm: the names below that need them are
fetched at first use. Read ``base.py`` first; ``evolution.py`` shows a tuner that uses it all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuners.assessor import Assessor, AssessResult
from tuners.base import Tuner
from tuners.errors import (
    CycleRefused,
    NoMoreTrialError,
    ParentFailed,
    SelfWait,
    TunerArgumentError,
    TunerError,
    UnknownParent,
    WaitCancelled,
    WaitNotAllowed,
    WaitRefused,
    WaitTimeout,
    WaitWithLock,
)
from tuners.needs import with_needs

if TYPE_CHECKING:
    from tuners.asha import ASHATuner
    from tuners.builtin import builtin_tuner, make_builtin
    from tuners.enas import ENASTuner
    from tuners.evolution import RegularizedEvolutionTuner
    from tuners.grid import GridSearchTuner
    from tuners.hyperband import HyperbandTuner
    from tuners.morphing import MorphingEvolutionTuner, NetworkMorphismTuner
    from tuners.pbt import PBTTuner
    from tuners.random import RandomTuner
    from tuners.schedules import ScheduleTuner
    from tuners.space import SpaceError
    from tuners.spos import SPOSTuner

_LAZY = {
    "RandomTuner": "tuners.random",
    "GridSearchTuner": "tuners.grid",
    "ASHATuner": "tuners.asha",
    "ENASTuner": "tuners.enas",
    "HyperbandTuner": "tuners.hyperband",
    "MorphingEvolutionTuner": "tuners.morphing",
    "NetworkMorphismTuner": "tuners.morphing",
    "PBTTuner": "tuners.pbt",
    "ScheduleTuner": "tuners.schedules",
    "RegularizedEvolutionTuner": "tuners.evolution",
    "SPOSTuner": "tuners.spos",
    "SpaceError": "tuners.space",
    "builtin_tuner": "tuners.builtin",
    "make_builtin": "tuners.builtin",
}

__all__ = [
    "ASHATuner",
    "AssessResult",
    "Assessor",
    "CycleRefused",
    "ENASTuner",
    "GridSearchTuner",
    "HyperbandTuner",
    "MorphingEvolutionTuner",
    "NetworkMorphismTuner",
    "NoMoreTrialError",
    "PBTTuner",
    "ParentFailed",
    "RandomTuner",
    "RegularizedEvolutionTuner",
    "SPOSTuner",
    "ScheduleTuner",
    "SelfWait",
    "SpaceError",
    "Tuner",
    "TunerArgumentError",
    "TunerError",
    "UnknownParent",
    "WaitCancelled",
    "WaitNotAllowed",
    "WaitRefused",
    "WaitTimeout",
    "WaitWithLock",
    "builtin_tuner",
    "make_builtin",
    "with_needs",
]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'tuners' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
