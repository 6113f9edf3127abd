"""A trained model that can be asked: all that its process needs, and what must stay meanwhile."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from dispatcher.errors import UserError
from dispatcher.experiment import ExperimentConfig
from dispatcher.experiment.references import resolve_environment
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.experiments.weights import WeightsToRead
from dispatcher.folders.ownership import demand_ours
from dispatcher.inference.declared import DeclaredDemo, TrialModule, offer_of
from dispatcher.queries import TrialSummary
from dispatcher.wiring.agents import agent_config
from trial_runtime.agent.dialects import dialect_of
from trial_runtime.agent.runners.environment import base_environment, environment_now
from trial_runtime.endpoint import Endpoint
from trial_runtime.inference import ModelOrder
from trial_runtime.masking import Mask
from trial_runtime.safe_path import code_arguments
from trial_runtime.session_file import (
    AGENT_VARIABLE,
    SESSION_VARIABLE,
    SESSION_VERSION,
    SessionFile,
)

_RUN: str = "from trial_runtime.inference import main; main()"

#: The oldest Python for which a command must do: that of a trial's command is not known.
_OLDEST = (3, 9)


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A trial whose model can be asked.

    Attributes:
        handle: the experiment.
        config: its settings.
        trial: the trial.
        offer: what its module offers.
    """

    handle: ExperimentHandle
    config: ExperimentConfig
    trial: TrialSummary
    offer: DeclaredDemo

    @property
    def name(self) -> str:
        """The experiment and the trial, for people."""
        return f"trial {self.trial.id} of {self.handle.id}"

    @property
    def key(self) -> tuple[Any, ...]:
        """The state from which its process was made: another is needed if it differs."""
        module = os.stat(self.offer.module.file)
        settings = os.stat(self.handle.place.config)
        weights = (self.trial.id, self.trial.weights_digest)
        changed = (module.st_mtime_ns, module.st_size, settings.st_mtime_ns)
        return (str(self.handle.folder), *weights, *changed)

    @property
    def changed_since(self) -> bool:
        """Whether the module was changed after the trial had ended."""
        ended = self.trial.ended_at
        return ended is not None and self.offer.module.file.stat().st_mtime > ended + 1.0


def trained(handle: ExperimentHandle, trial: int) -> TrainedModel:
    """Look up a trial whose model is to be asked. Runs nothing.

    Args:
        handle: the experiment, which must be ours.
        trial: its number.

    Raises:
        NotOurs: it is somebody else's, and so is the code.
        TrialNotFound: there is no such trial.
        UserError: it has no weights, or its code is not here or has no such function.
    """
    demand_ours(handle.folder)
    one = handle.trial(trial).trial
    config = handle.config()
    offer = offer_of(config)
    handle.weights.committed(trial)
    return TrainedModel(handle, config, one, offer)


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """The start of a process. ``mask`` knows the secrets of ``environment``; ``mark`` is
    the value of a variable by which all that it starts is known; ``here`` is a folder of its own.
    """

    here: str
    mark: str
    command: list[str]
    folder: str
    environment: dict[str, str]
    order: ModelOrder
    mask: Mask


@contextmanager
def prepared(model: TrainedModel, memory_bytes: int, answer_bytes: int) -> Iterator[ProcessPlan]:
    """Hold the weights, and say how a process is started; for as long as it lives.

    Args:
        model: the model.
        memory_bytes: what the process may have for data.
        answer_bytes: the size of an answer.

    Raises:
        UserError: the weights are gone, or are not as they were committed.
        BackendError: they cannot be read now.
    """
    module = model.offer.module
    with (
        tempfile.TemporaryDirectory(prefix="bequeath-infer-") as here,
        model.handle.weights.reading(model.trial.id) as weights,
    ):
        mask = Mask()
        environment = _environment(model, here, mask)
        mark = environment[AGENT_VARIABLE] = f"{here}/model"
        order = ModelOrder(
            session=_session(model, weights, here),
            folder=module.folder,
            module=module.name,
            memory_bytes=memory_bytes,
            answer_bytes=answer_bytes,
            script=module.script,
            drawings={
                name: (one.width, one.height)
                for name, one in (model.offer.inputs or {}).items()
                if one.kind == "drawing"
            },
        )
        command = [_python(module, environment), *code_arguments(_RUN, _OLDEST)]
        folder = str(model.config.trial_code_directory)
        yield ProcessPlan(here, mark, command, folder, environment, order, mask)


def _environment(model: TrainedModel, here: str, mask: Mask) -> dict[str, str]:
    """The variables of the trial's own processes, as its agent would have set them here."""
    config = model.config
    resolve_environment(config.trial_environment)  # says which one leads nowhere
    agent = agent_config(
        config, config.services[0], model.handle.place, Endpoint(""), 0, Path(here)
    )
    agent = replace(agent, cache=None)
    base = base_environment(agent, dialect_of(agent))
    base.pop(SESSION_VARIABLE, None)
    return environment_now(base, dict(agent.trial.environment), mask)


def _python(module: TrialModule, environment: Mapping[str, str]) -> str:
    if not module.python:
        return sys.executable
    found = shutil.which(module.python, path=environment.get("PATH"))
    if found is None:
        raise UserError(
            f"the Python of the trials is not on this machine: {module.python}",
            hint="ask on a machine that has it",
            where="trialCommand",
        )
    return found


def _session(model: TrainedModel, weights: WeightsToRead, here: str) -> SessionFile:
    """The session: as of a trial that begins with these weights, and saves none."""
    config, trial = model.config, model.trial
    parameters = trial.parameters
    if isinstance(parameters, dict):
        keys = config.weight_keys
        parameters = {k: v for k, v in parameters.items() if k != keys.save}
        parameters[keys.restore] = weights.path
    folder = f"{here}/{trial.id}/1"
    os.makedirs(folder)
    return SessionFile(
        version=SESSION_VERSION,
        address="",
        routing="",
        trial=trial.id,
        attempt=max(trial.attempt, 1),
        folder=folder,
        parameters=msgspec.json.encode(parameters).decode(),
        seed=config.seed or 0,
        restore_path=weights.path,
        restore_digest=weights.digest,
        restore_kind=weights.kind,
        weights_root=weights.root,
        read_roots=tuple(str(path) for path in config.weights_read_roots),
        code_directory=str(config.trial_code_directory),
        experiment=model.handle.id,
        stale_timeout_s=1.0,
    )
