"""An order as it must be in a job: its paths, its variables, and how it begins there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replaced

from msgspec.structs import replace

from dispatcher.errors import PermanentBackendError
from dispatcher.platforms.allocations.allocation import AllocationOrder
from dispatcher.platforms.bringing import SharedFolder, with_brought
from dispatcher.platforms.clusters.moved import moved_config, moved_order
from dispatcher.platforms.http_jobs.section import HttpJobsService
from trial_runtime.agent.config import AgentConfig, Brought
from trial_runtime.endpoint import FOLDER, Endpoint


class PathsThere:
    """Translates orders for the jobs of one service.

    Args:
        section: the service's part of the file.
        rank_variable: the one by which nodes know their rank there.
        token: that of the share below the weights root.
        bringing: brings code and our runtime; None: they are there.
    """

    def __init__(
        self,
        section: HttpJobsService,
        rank_variable: str,
        token: Callable[[], str],
        bringing: SharedFolder | None = None,
    ) -> None:
        self._section = section
        self._rank_variable = rank_variable
        self._token = token
        self._bringing = bringing

    def order(self, order: AllocationOrder) -> AllocationOrder:
        """An order with the paths and variables of a job, and the log that it has there.

        Raises:
            PermanentBackendError: a reference leads nowhere, or code cannot be brought.
        """
        config = self.config(order.config)
        try:
            there = moved_order(order, config, self._section.environment)
        except LookupError as error:
            raise PermanentBackendError(f"a variable of the trials {error}") from error
        begins = tuple(order.arguments)
        if self._bringing is not None and order.config.probe is None:
            begins = (self._there(self._bringing.begin, "the code"),)
        log = (self._section.seen(order.log) or "") if self._shares else ""
        return replaced(there, arguments=begins, log=log)

    def config(self, config: AgentConfig) -> AgentConfig:
        """The configuration of an agent with the paths of a job.

        Raises:
            PermanentBackendError: code cannot be brought, or a folder is not mounted there.
        """
        section = self._section
        home = config.experiment_folder
        folder = f"{section.work_folder}/experiments/{config.experiment}/{config.worker}"
        if self._shares:
            folder = self._there(home, "'sharedFolder'")
        if config.remote is not None:
            root = f"{folder}/weights"
        else:
            root = section.seen(config.weights_root) or ""
        moved = {path: seen for path in config.read_roots if (seen := section.seen(path))}
        there = moved_config(
            config,
            folder,
            section.environment,
            token=self._token(),
            weights_root=root,
            read_roots=moved,
            code=section.code_folder or section.seen(config.trial.code_directory) or "",
            rank_variable=self._rank_variable,
        )
        there = replace(
            there,
            head=self._endpoint(there.head),
            ways=tuple(map(self._endpoint, there.ways)),
        )
        if self._bringing is None:
            return there
        laid = self._bringing.bring(there).brought
        assert laid is not None
        return with_brought(there, self._brought(laid))

    @property
    def _shares(self) -> bool:
        return self._section.shared_folder is not None

    def _there(self, path: str, what: str) -> str:
        seen = self._section.seen(path)
        if seen is None:
            text = f"{what} is in {path}, which no mount of the jobs has"
            raise PermanentBackendError(text, hint="add it to 'mounts'")
        return seen

    def _endpoint(self, endpoint: Endpoint) -> Endpoint:
        """A way to the head, where it leads through a folder that is mounted at another path."""
        if not endpoint.address.startswith(FOLDER):
            return endpoint
        path = self._there(endpoint.address.removeprefix(FOLDER), "'sharedFolder'")
        return replace(endpoint, address=f"{FOLDER}{path}")

    def _brought(self, laid: Brought) -> Brought:
        """Archives as they are laid down here, with the paths that they have there."""
        return replace(
            laid,
            work=self._there(laid.work, "the code"),
            archives=self._there(laid.archives, "the code"),
            asks=self._there(laid.asks, "the code") if laid.asks else "",
        )
