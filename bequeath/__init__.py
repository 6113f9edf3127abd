"""All that users of bequeath import, under one name: ``import bequeath as bq``.

Trials take ``bq.get_parameters``, ``bq.report_final`` and ``bq.load_weights``, tuners
``bq.Tuner`` and ``bq.space``, scripts and notebooks ``bq.Experiment``. Importing this package
loads nothing: a name is fetched at its first use, together with the package that has it, so a
trial never loads the dispatcher. All names are in :mod:`bequeath.names`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bequeath.names import HOMES

if TYPE_CHECKING:
    from dispatcher import Experiment as Experiment
    from dispatcher import __version__ as __version__
    from dispatcher.study import Study as Study
    from dispatcher.study import StudyTrial as StudyTrial
    from trial_runtime import attempt as attempt
    from trial_runtime import checkpoint_dir as checkpoint_dir
    from trial_runtime import devices as devices
    from trial_runtime import get_next_parameter as get_next_parameter
    from trial_runtime import get_parameters as get_parameters
    from trial_runtime import load_checkpoint as load_checkpoint
    from trial_runtime import load_weights as load_weights
    from trial_runtime import log as log
    from trial_runtime import morphism as morphism
    from trial_runtime import report_final as report_final
    from trial_runtime import report_final_result as report_final_result
    from trial_runtime import report_intermediate as report_intermediate
    from trial_runtime import report_intermediate_result as report_intermediate_result
    from trial_runtime import save_artefact as save_artefact
    from trial_runtime import save_checkpoint as save_checkpoint
    from trial_runtime import save_weights as save_weights
    from trial_runtime import seed as seed
    from trial_runtime import shared_store as shared_store
    from trial_runtime import should_stop as should_stop
    from trial_runtime import trial_id as trial_id
    from trial_runtime.api_errors import InvalidMetric as InvalidMetric
    from trial_runtime.errors import BequeathError as BequeathError
    from tuners import ASHATuner as ASHATuner
    from tuners import Assessor as Assessor
    from tuners import AssessResult as AssessResult
    from tuners import CycleRefused as CycleRefused
    from tuners import ENASTuner as ENASTuner
    from tuners import GridSearchTuner as GridSearchTuner
    from tuners import HyperbandTuner as HyperbandTuner
    from tuners import MorphingEvolutionTuner as MorphingEvolutionTuner
    from tuners import NetworkMorphismTuner as NetworkMorphismTuner
    from tuners import NoMoreTrialError as NoMoreTrialError
    from tuners import ParentFailed as ParentFailed
    from tuners import PBTTuner as PBTTuner
    from tuners import RandomTuner as RandomTuner
    from tuners import RegularizedEvolutionTuner as RegularizedEvolutionTuner
    from tuners import ScheduleTuner as ScheduleTuner
    from tuners import SelfWait as SelfWait
    from tuners import SpaceError as SpaceError
    from tuners import SPOSTuner as SPOSTuner
    from tuners import Tuner as Tuner
    from tuners import TunerArgumentError as TunerArgumentError
    from tuners import TunerError as TunerError
    from tuners import UnknownParent as UnknownParent
    from tuners import WaitCancelled as WaitCancelled
    from tuners import WaitNotAllowed as WaitNotAllowed
    from tuners import WaitRefused as WaitRefused
    from tuners import WaitTimeout as WaitTimeout
    from tuners import WaitWithLock as WaitWithLock
    from tuners import builtin_tuner as builtin_tuner
    from tuners import make_builtin as make_builtin
    from tuners import with_needs as with_needs
    from tuners.space.parameters import blocks as blocks
    from tuners.space.parameters import choice as choice
    from tuners.space.parameters import int as int
    from tuners.space.parameters import lognormal as lognormal
    from tuners.space.parameters import loguniform as loguniform
    from tuners.space.parameters import normal as normal
    from tuners.space.parameters import qlognormal as qlognormal
    from tuners.space.parameters import qloguniform as qloguniform
    from tuners.space.parameters import qnormal as qnormal
    from tuners.space.parameters import quniform as quniform
    from tuners.space.parameters import randint as randint
    from tuners.space.parameters import space as space
    from tuners.space.parameters import uniform as uniform

#: Not ``int``: with a star, that of Python would be hidden.
__all__ = sorted({*HOMES} - {"int"})


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module 'bequeath' has no attribute {name!r}{_nearest(name)}")
    from bequeath.packages import fetch

    value = globals()[name] = fetch(name)
    return value


def _nearest(name: str) -> str:
    if name.startswith("__"):
        return ""  # tools ask for such names all the time
    import difflib

    near = difflib.get_close_matches(name, HOMES, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def __dir__() -> list[str]:
    return sorted({*globals(), *HOMES})
