"""The surroundings of a trial written for NNI: variables, and the folder that they name."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

import msgspec
from msgspec.structs import replace

from trial_runtime import nni_shim
from trial_runtime.agent.attempt import Attempt, CannotStart
from trial_runtime.agent.base.timers import Timers
from trial_runtime.agent.link.reports import Reports
from trial_runtime.agent.runners.trial_dialect import Overheard, TrialDialect
from trial_runtime.opening import open_regular

#: Allows our module ``nni`` to give its place to a real one.
FILES_ARE_READ = "BEQUEATH_NNI_FILES"

#: Where NNI keeps a trial's parameters, below ``NNI_SYS_DIR``.
PARAMETER_FILE = "parameter.cfg"


class NniDialect(TrialDialect):
    """Trials written for NNI: its module and variables, its files of parameters and metrics."""

    names_checkpoints = False

    def shared_variables(self) -> dict[str, str]:
        return {
            # On any platform: it makes NNI's own library write its file, which the agent reads.
            "NNI_PLATFORM": "local",
            FILES_ARE_READ: "1",
            "NNI_EXP_ID": self._config.experiment,
            "NNI_CODE_DIR": self._config.trial.code_directory,
            "MULTI_PHASE": "false",
            "REUSE_MODE": "false",
        }

    def module_folders(self) -> tuple[str, ...]:
        return (nni_shim.folder(),)  # it gives its place to a real one

    def furnish(self, attempt: Attempt, environment: MutableMapping[str, str]) -> None:
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

    def furnish_session(self, attempt: Attempt) -> None:
        variables = dict(attempt.session.variables)
        self.furnish(attempt, variables)
        attempt.session = replace(attempt.session, variables=variables)

    def overheard(self, reports: Reports, timers: Timers) -> Overheard:
        from trial_runtime.agent.nni.metrics import NniMetrics

        return NniMetrics(self._config.trial, reports, timers)
