"""The table of what ``import bequeath as bq`` gives, and of where each name is.

A new name is written here, and for checkers of types at the top of ``bequeath/__init__.py``.
"""

from __future__ import annotations

#: What is public, by the module that has it.
NAMES = {
    "dispatcher": ("Experiment", "__version__"),
    "dispatcher.study": ("Study", "StudyTrial"),
    "trial_runtime": (
        "attempt",
        "checkpoint_dir",
        "devices",
        "get_next_parameter",
        "get_parameters",
        "load_checkpoint",
        "load_weights",
        "log",
        "report_final",
        "report_final_result",
        "report_intermediate",
        "report_intermediate_result",
        "save_artefact",
        "save_checkpoint",
        "save_weights",
        "seed",
        "shared_store",
        "should_stop",
        "trial_id",
    ),
    "trial_runtime.api_errors": ("InvalidMetric",),
    "trial_runtime.errors": ("BequeathError",),
    "tuners": (
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
    ),
    "tuners.space.parameters": (
        "blocks",
        "choice",
        "int",
        "loguniform",
        "lognormal",
        "normal",
        "qloguniform",
        "qlognormal",
        "qnormal",
        "quniform",
        "randint",
        "space",
        "uniform",
    ),
}

#: Modules that are public as a whole.
MODULES = {"morphism": "trial_runtime.morphism"}

#: The module of each name.
HOMES = {name: module for module, names in NAMES.items() for name in names} | MODULES
