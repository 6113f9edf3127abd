"""The surroundings of a trial written for NNI: variables, and the folder that they name."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

import msgspec
from msgspec.structs import replace

from trial_runtime import nni_shim
from trial_runtime.agent.attempt import Attempt, CannotStart
from trial_runtime.agent.config import AgentConfig
from trial_runtime.opening import open_regular

#: Allows our module ``nni`` to give its place to a real one.
FILES_ARE_READ = "BEQUEATH_NNI_FILES"

#: Where NNI keeps a trial's parameters, below ``NNI_SYS_DIR``.
PARAMETER_FILE = "parameter.cfg"


def shared_variables(config: AgentConfig) -> dict[str, str]:
    """The variables that all trials of an experiment have in common."""
    return {
        # On any platform: it makes NNI's own library write its file, which the agent reads.
        "NNI_PLATFORM": "local",
        FILES_ARE_READ: "1",
        "NNI_EXP_ID": config.experiment,
        "NNI_CODE_DIR": config.trial.code_directory,
        "MULTI_PHASE": "false",
        "REUSE_MODE": "false",
    }


def module_path() -> str:
    """The folder from which ``import nni`` finds ours, or a real one by way of it."""
    return nni_shim.folder()


def furnish(attempt: Attempt, environment: MutableMapping[str, str]) -> None:
    """Write the parameters where NNI has them, and set the variables that name the place.

    Raises:
        CannotStart: the attempt's folder cannot be written to.
    """
    session = attempt.session
    environment["NNI_SYS_DIR"] = session.folder
    environment["NNI_OUTPUT_DIR"] = session.folder
    environment["NNI_TRIAL_JOB_ID"] = str(attempt.trial)
    environment["NNI_TRIAL_SEQ_ID"] = str(attempt.trial)
    content = {
        "parameter_id": attempt.trial,
        "parameter_source": "algorithm",
        "parameters": msgspec.Raw(session.parameters.encode()),
        "parameter_index": 0,
    }
    path = os.path.join(session.folder, PARAMETER_FILE)
    try:
        os.makedirs(os.path.join(session.folder, ".nni"), exist_ok=True)
        with open(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(msgspec.json.encode(content))
    except OSError as error:
        raise CannotStart(f"cannot lay the parameters down: {error.strerror}") from error


def furnish_session(attempt: Attempt) -> None:
    """The same for a process that is there before its trial: its session brings the variables.

    Raises:
        CannotStart: the attempt's folder cannot be written to.
    """
    variables = dict(attempt.session.variables)
    furnish(attempt, variables)
    attempt.session = replace(attempt.session, variables=variables)
