"""The maker of the parts of one worker's driver, for its platform."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dispatcher.channel import Router
from dispatcher.core.ids import WorkerId
from dispatcher.experiment.sections import LeasesConfig
from dispatcher.experiment.service import ServiceConfig
from dispatcher.platforms.agents.driver import AgentDriver
from dispatcher.platforms.agents.file_asks import KeepLogs, keep_no_logs
from dispatcher.platforms.agents.process import AgentProcess
from dispatcher.platforms.agents.visit import Visit
from dispatcher.platforms.agents.visited import VisitedProcess
from dispatcher.platforms.allocations.process import Load, always_enough
from dispatcher.platforms.driver import C, Closable, Driver
from dispatcher.platforms.services.protocol import ServiceBackend
from dispatcher.platforms.services.threaded import ThreadedBackend
from trial_runtime.agent.config import AgentConfig


@dataclass
class SharedParts:
    """Keeps what the workers of each section share; it is made once."""

    _made: dict[int, tuple[ServiceConfig, Closable]] = field(default_factory=dict)

    def of(self, section: ServiceConfig, make: Callable[[], C]) -> C:
        """Return that of a section; sections are told apart by what they are, not what they say."""
        kept = self._made.get(id(section))
        if kept is not None:
            return kept[1]  # type: ignore[return-value]  # its platform has made it
        made = make()
        self._made[id(section)] = (section, made)  # the section stays, and so does its identity
        return made

    def close(self) -> None:
        """Close all of them."""
        for _, part in self._made.values():
            part.close()
        self._made.clear()


class WorkerDrivers:
    """See :class:`dispatcher.platforms.driver.Drivers`.

    Args:
        worker: the one whose driver is made.
        folder: the experiment's, on this machine.
        config: that of an agent of the worker.
        router: on which agents reach the head.
        leases: when a silent worker is suspect, and when it is lost.
        known: whether a head before this one may have left something there.
        leads: whether this head still leads.
        trouble_with_share: why a share that an agent reports is not that of others; see
            :class:`~dispatcher.platforms.agents.driver.AgentDriver`.
        shared: what the workers of a section share.
        keep_logs: gets the ends of logs that agents hand in.
        load: how much there is to do.
        clock: the engine's, in seconds since the epoch.
    """

    def __init__(
        self,
        worker: str,
        folder: Path,
        config: AgentConfig,
        router: Router,
        leases: LeasesConfig,
        *,
        known: bool,
        leads: Callable[[], bool],
        trouble_with_share: Callable[[str], str],
        shared: SharedParts,
        keep_logs: KeepLogs = keep_no_logs,
        load: Callable[[], Load] = always_enough,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._worker = worker
        self._folder = folder
        self._config = config
        self._router = router
        self._leases = leases
        self._known = known
        self._leads = leads
        self._trouble_with_share = trouble_with_share
        self._shared = shared
        self._keep_logs = keep_logs
        self._load = load
        self._clock = clock

    def agent(self, process: AgentProcess) -> Driver:
        """See :meth:`Drivers.agent`; admits the worker to the ROUTER."""
        routing_id = f"agent:{self._worker}:{secrets.token_hex(16)}"
        return AgentDriver(
            self._router.admit(self._worker, routing_id),
            self._config,
            process,
            self._folder,
            suspect_s=self._leases.suspect,
            lost_s=self._leases.lost,
            leads=self._leads,
            trouble_with_share=self._trouble_with_share,
            keep_logs=self._keep_logs,
        )

    def visited(self, visit: Callable[[], Visit]) -> AgentProcess:
        """See :meth:`Drivers.visited`."""
        return VisitedProcess(
            self._worker,
            visit,
            known=self._known,
            patience_s=self._leases.lost,
            leads=self._leads,
        )

    def load(self) -> Load:
        """See :meth:`Drivers.load`."""
        return self._load()

    def now(self) -> float:
        """See :meth:`Drivers.now`."""
        return self._clock()

    def service(self, make: Callable[[], ServiceBackend]) -> Driver:
        """See :meth:`Drivers.service`."""
        return ThreadedBackend(
            WorkerId(self._worker),
            make,
            trial=self._config.trial,
            suspect_s=self._leases.suspect,
            lost_s=self._leases.lost,
            leads=self._leads,
        )

    def shared(self, section: ServiceConfig, make: Callable[[], C]) -> C:
        """See :meth:`Drivers.shared`."""
        return self._shared.of(section, make)
