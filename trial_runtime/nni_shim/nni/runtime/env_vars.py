"""The environment that NNI gives trials and dispatchers, as tuples."""

from __future__ import annotations

import os
from typing import NamedTuple, Optional


class TrialEnvVars(NamedTuple):
    """What a trial finds; None for what is not set."""

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
    """What a tuner finds; None for what is not set."""

    SDK_PROCESS: Optional[str]
    NNI_MODE: Optional[str]
    NNI_CHECKPOINT_DIRECTORY: Optional[str]
    NNI_LOG_DIRECTORY: Optional[str]
    NNI_LOG_LEVEL: Optional[str]
    NNI_INCLUDE_INTERMEDIATE_RESULTS: Optional[str]


trial_env_vars = TrialEnvVars(*(os.environ.get(name) for name in TrialEnvVars._fields))
dispatcher_env_vars = DispatcherEnvVars(
    *(os.environ.get(name) for name in DispatcherEnvVars._fields)
)
