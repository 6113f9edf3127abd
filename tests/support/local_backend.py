"""An agent on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from dispatcher.platforms.agents.driver import AgentDriver
from dispatcher.platforms.agents.file_asks import KeepLogs, keep_no_logs
from dispatcher.platforms.local.process import LocalProcess
from dispatcher.ports import PeerLink
from trial_runtime.agent.config import AgentConfig


class LocalBackend(AgentDriver):
    """The driver of an agent that is a process of this machine; for the arguments see
    :class:`dispatcher.platforms.agents.driver.AgentDriver`."""

    def __init__(
        self,
        link: PeerLink,
        config: AgentConfig,
        *,
        suspect_s: float = 30.0,
        lost_s: float = 120.0,
        leads: Callable[[], bool] = lambda: True,
        keep_logs: KeepLogs = keep_no_logs,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        folder = Path(config.experiment_folder)
        super().__init__(
            link,
            config,
            LocalProcess(folder, config.worker, config.run_folder),
            folder,
            suspect_s=suspect_s,
            lost_s=lost_s,
            leads=leads,
            keep_logs=keep_logs,
            clock=clock,
        )
