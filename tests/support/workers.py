"""The worker that tests of one agent are about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint
from trial_runtime.facts import WorkerId

LOCAL = WorkerId("local")


def agent_config(folder: Path, worker: str = LOCAL, **more: Any) -> AgentConfig:
    """The configuration of an agent that has all in one folder, and no head to call.

    Args:
        folder: its own, the experiment's and the code's, and the weights root.
        worker: its name.
        **more: whatever differs.
    """
    place = str(folder)
    given: dict[str, Any] = {
        "slots": 2,
        "head": Endpoint("ipc:///nowhere"),
        "epoch": 1,
        "run_folder": place,
        "experiment_folder": place,
        "trial": TrialSpec(place, command="true"),
        "weights_root": place,
    }
    return AgentConfig(worker, **(given | more))
