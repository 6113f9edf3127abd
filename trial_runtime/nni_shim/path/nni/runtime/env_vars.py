"""The environment that NNI gives trials and dispatchers, as tuples."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Optional


class TrialEnvVars(NamedTuple):
    """The variables of a trial; None for those that are not set."""

    NNI_PLATFORM: Optional[str]
    NNI_EXP_ID: Optional[str]
    NNI_TRIAL_JOB_ID: Optional[str]
    NNI_SYS_DIR: Optional[str]
    NNI_OUTPUT_DIR: Optional[str]
    NNI_TRIAL_SEQ_ID: Optional[str]
    NNI_CODE_DIR: Optional[str]
    MULTI_PHASE: Optional[str]
    REUSE_MODE: Optional[str]


class DispatcherEnvVars(NamedTuple):
    """The variables of a tuner; None for those that are not set."""

    SDK_PROCESS: Optional[str]
    NNI_MODE: Optional[str]
    NNI_CHECKPOINT_DIRECTORY: Optional[str]
    NNI_LOG_DIRECTORY: Optional[str]
    NNI_LOG_LEVEL: Optional[str]
    NNI_INCLUDE_INTERMEDIATE_RESULTS: Optional[str]


#: Not public in NNI, but some packages read the environment anew by them.
_trial_env_var_names = TrialEnvVars._fields
_dispatcher_env_var_names = DispatcherEnvVars._fields


def _load_env_vars(names: Any) -> Any:
    kind = TrialEnvVars if tuple(names) == TrialEnvVars._fields else DispatcherEnvVars
    return kind(*(os.environ.get(name) for name in kind._fields))


trial_env_vars = _load_env_vars(_trial_env_var_names)
dispatcher_env_vars = _load_env_vars(_dispatcher_env_var_names)
