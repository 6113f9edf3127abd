"""The configuration and the variables of an agent on a node that sees our folders at the same
paths, and how often its scheduler is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from dispatcher.errors import PermanentBackendError
from dispatcher.platforms.allocations.allocation import AllocationOrder
from dispatcher.platforms.bringing import SharedFolder
from dispatcher.platforms.clusters.section import ClusterService
from dispatcher.platforms.given import ServiceGiven
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.link.path_mapping import on_another_host
from trial_runtime.agent.runners.environment import is_reference, resolve_references

C = TypeVar("C", bound=ClusterService)


class LookPace:
    """Seconds until the next look: few while something is expected to change, many otherwise. A
    scheduler serves others, too; that an agent begins, or is silent, is heard without it.

    Args:
        quick_s: between two looks while something is expected to change.
        slow_s: otherwise.
        quick_for_s: so long after an order, or an end, something is.
        clock: monotonic seconds.
    """

    def __init__(
        self, quick_s: float, slow_s: float, quick_for_s: float, clock: Callable[[], float]
    ) -> None:
        self._quick_s, self._slow_s, self._quick_for_s = quick_s, slow_s, quick_for_s
        self._clock = clock
        self._settled = True
        self.hurry()

    def hurry(self) -> None:
        """Expect something to change: an order was given, or taken back."""
        self._quick_until = self._clock() + self._quick_for_s

    def settle(self, settled: bool) -> None:
        """Take note whether all that was listed is what it will be for a while."""
        self._settled = settled

    @property
    def every_s(self) -> float:
        """Seconds until the next look."""
        quick = not self._settled or self._clock() < self._quick_until
        return self._quick_s if quick else self._slow_s


def config_on_node(
    config: AgentConfig, service: ServiceGiven[C], home: Path, bringing: SharedFolder | None = None
) -> AgentConfig:
    """The configuration of an agent on a node. Secrets come by variables of the agent.

    Args:
        config: as it would be on this machine.
        service: of the worker.
        home: the worker's folder.
        bringing: brings code and our runtime, if the section asks for it.

    Raises:
        PermanentBackendError: they cannot be brought.
    """
    config = replace(config, experiment_folder=str(home))
    root = "" if config.remote is None else f"{home}/weights"
    there = on_another_host(config, token=service.token(), weights_root=root)
    own = service.section.environment
    masked = {key: f"env:{key}" for key in own if is_reference(own[key])}
    trial = replace(there.trial, environment=masked | there.trial.environment)
    there = replace(there, trial=trial)
    return there if bringing is None else bringing.bring(there)


def variables_on_node(
    order: AllocationOrder, section: ClusterService, *, brings: bool = False
) -> dict[str, str]:
    """The variables of an agent on a node, references resolved on this machine.

    Args:
        order: whose variables come first.
        section: of the service, whose variables hide those.
        brings: whether our runtime is brought, so that the one here has no place among them.

    Raises:
        PermanentBackendError: a reference leads nowhere.
    """
    own = section.environment
    plain = {key: value.removeprefix("literal:") for key, value in own.items()}
    given = dict(order.environment)
    if brings:
        given.pop("PYTHONPATH", None)
    try:
        return {**given, **plain, **resolve_references(own)}
    except LookupError as error:
        raise PermanentBackendError(f"'environment' has {error}") from error


def make_home(home: Path) -> None:
    """Make a worker's folder with that of its logs, for this user alone. Raises ``OSError``."""
    (home / "logs").mkdir(mode=0o700, parents=True, exist_ok=True)


def unwritable(error: OSError, home: Path) -> PermanentBackendError:
    """The error of files of an allocation that cannot be written.

    Args:
        error: what the system says.
        home: the folder, if the error names none.
    """
    text = f"cannot write the files of a worker: {error.strerror or error}"
    return PermanentBackendError(text, where=str(error.filename or home))
