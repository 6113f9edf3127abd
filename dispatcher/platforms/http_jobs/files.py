"""The files of jobs in the folder that they share with this machine, and the orders of jobs, which
name them. What is secret of a job is in a secret of its service, where that has some."""

from __future__ import annotations

import contextlib
from base64 import b64encode
from hashlib import blake2s
from pathlib import Path
from typing import TypeVar

from dispatcher.errors import PassingBackendError
from dispatcher.platforms.allocations.allocation import AllocationOrder
from dispatcher.platforms.bringing import unfit_path, why_unfit
from dispatcher.platforms.clusters.nodes import make_home, unwritable
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.http_jobs.jobs import JobOrder, JobService
from dispatcher.platforms.http_jobs.launching import line_of_file, line_of_secret, start_script
from dispatcher.platforms.http_jobs.section import HttpJobsService
from dispatcher.platforms.http_jobs.translation import PathsThere
from trial_runtime.agent.config import AgentConfig, encode_config
from trial_runtime.agent.processes.record import write_private

#: The wall time of a probe (seconds): modules take long to import where nobody did it before.
PROBE_S = 900.0

C = TypeVar("C", bound=HttpJobsService)


class JobFiles:
    """The files of all jobs of a service. Both of each hold keys, and are for their owner alone.

    Args:
        service: the service and its surroundings.
        jobs: asks the service.
        translation: of orders for its jobs.
    """

    def __init__(self, service: ServiceGiven[C], jobs: JobService, translation: PathsThere) -> None:
        self._section: HttpJobsService = service.section
        self._folder = service.section.homes(service.experiment, service.folder)
        self._label = service.label
        self._jobs = jobs
        self._translation = translation
        self._homes: dict[str, Path] = {}  # of workers, by the names of their jobs
        self._has_learned = False

    @property
    def _are_there(self) -> bool:
        """Whether jobs have files: they are in no secret."""
        return self._section.shared_folder is not None and not self._jobs.secret_place

    def learn(self) -> None:
        """Look once for files that a head before has laid down."""
        if self._are_there and not self._has_learned:
            for path in self._folder.glob(f"*/{self._label}-*.config"):
                self._homes.setdefault(path.stem, path.parent)
        self._has_learned = True

    def lay(self, order: AllocationOrder) -> JobOrder:
        """Lay down what is secret of an order, unless its service has a secret for it; returns the
        job. Raises ``PermanentBackendError``."""
        there = self._translation.order(order)
        config, home = there.config, Path(order.config.experiment_folder)
        wall_s = self._wall_s(order)
        script = start_script(
            [self._section.python, *there.arguments],
            encode_config(config),
            there.environment,
            config_path=_config_path(config.experiment_folder, order.name) * self._are_there,
            log=there.log,
            stays=self._are_there and order.nodes > 1,
            wall_s=None if self._jobs.ends_at_wall else wall_s,
            grace_s=config.trial.stop_grace_s,
            title=f"bequeath: {config.worker} of experiment {config.experiment}",
        )
        line, secret = line_of_secret(self._jobs.secret_place), b64encode(script).decode()
        try:
            if self._section.shared_folder is not None:
                make_home(home)
            if self._are_there:
                self._homes[order.name] = home
                write_private(Path(_config_path(home, order.name)), encode_config(config))
                write_private(Path(_start_path(home, order.name)), script)
                line, secret = line_of_file(_start_path(config.experiment_folder, order.name)), ""
        except OSError as error:
            raise unwritable(error, home) from error
        return JobOrder(
            order.name,
            self._label,
            mark_of(order),
            line,
            secret,
            order.nodes,
            wall_s,
            config.trial.stop_grace_s,
            config.experiment,
            config.worker,
            config.probe is not None,
        )

    def _wall_s(self, order: AllocationOrder) -> float | None:
        wall_s = self._section.wall_s
        if order.config.probe is None:
            return wall_s
        return PROBE_S if wall_s is None else min(wall_s, PROBE_S)

    def rewrite(self, name: str, config: AgentConfig) -> None:
        """Write a job's configuration anew, if its file is there still.

        Args:
            name: of the job.
            config: as it would be on this machine.
        """
        home = Path(config.experiment_folder)
        path = Path(_config_path(home, name))
        if not self._are_there or not path.exists():
            return
        self._homes[name] = home
        try:
            write_private(path, encode_config(self._translation.config(config)))
        except OSError as error:
            text = f"cannot be written: {error.strerror or error}"
            raise PassingBackendError(text, where=str(path)) from error

    def why_unfit(self, name: str) -> str:
        """Return why no agent could run in a job, as it has said itself; empty if it has not."""
        home = self._homes.get(name)
        return "" if home is None else why_unfit(Path(_config_path(home, name)))

    def remove(self, name: str) -> None:
        """Remove the files of a job that has ended, or never was."""
        home = self._homes.pop(name, None)
        if home is None:
            return
        config = Path(_config_path(home, name))
        for path in (config, unfit_path(config), Path(_start_path(home, name))):
            with contextlib.suppress(OSError):
                path.unlink()


def mark_of(order: AllocationOrder) -> str:
    """A digest of its ticket, by which a job is known as that of an order. The ticket itself is a
    secret."""
    return blake2s(order.config.ticket.encode(), digest_size=16).hexdigest()


def _config_path(home: Path | str, name: str) -> str:
    return f"{home}/{name}.config"


def _start_path(home: Path | str, name: str) -> str:
    return f"{home}/{name}.start"
