"""Actors on nodes that have neither bequeath nor the code: by the real holder in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.platforms.allocations.allocation import AllocationOrder
from dispatcher.platforms.archives import pack_all
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.ray import holder
from dispatcher.platforms.ray.allocator import RayAllocator
from dispatcher.platforms.ray.platform import RayPlatform
from dispatcher.platforms.ray.section import RayServiceConfig
from tests.unit.platforms.ray.test_allocator import LABEL, NAME, ScriptedDriver, carried, order_in
from trial_runtime.agent.config import ProbeQuestions

#: Nodes that are this machine.
HERE = {"headAddress": "127.0.0.1"}

HOLD = """\
import asyncio, json, sys
namespace = {"__name__": "holder"}
exec(open(sys.argv[1]).read(), namespace)
held = namespace["Holder"](json.loads(sys.argv[2]))
print(json.dumps(asyncio.run(held.watch())), flush=True)
"""


@pytest.fixture
def driver() -> ScriptedDriver:
    return ScriptedDriver()


@pytest.fixture
def submit(driver: ScriptedDriver, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Submit an order, and return what the actor gets."""
    code, shared = tmp_path / "code", tmp_path / "shared"
    code.mkdir()
    shared.mkdir()
    (code / "train.py").write_text("print(1)\n")

    def submitted(probe: ProbeQuestions | None = None, **keys: Any) -> dict[str, Any]:
        section = {"platform": "ray", "sharedFolder": str(shared), "bringCode": True, **keys}
        given = ServiceGiven(
            LABEL,
            "lab",
            RayServiceConfig.model_validate(section),
            tmp_path,
            ("127.0.0.1", 7070),
            lambda: pack_all(
                code, tmp_path / "packed", excluded=(), most_files=99, most_bytes=1 << 20
            ),
            lambda: "",
        )
        made = order_in(tmp_path, PYTHONPATH="/the/runtime/here", OTHER="kept")
        head = replace(made.config.head, address=f"ipc://{tmp_path}/nobody.sock")
        config = replace(made.config, head=head, head_grace_s=0.5, weights_root=str(tmp_path))
        config = replace(config, probe=probe, save_key="")
        arguments = ["-c", "the order's own"]
        order = AllocationOrder(NAME, config, arguments, made.environment)
        RayAllocator(given, driver, lambda: 100.0).submit(order)
        sent: dict[str, Any] = driver.asked[-1][1]["order"]
        return sent

    return submitted


def hold(order: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """How the agent of an actor has ended, on a node with an environment of its own."""
    ran = subprocess.run(
        [sys.executable, "-I", "-c", HOLD, holder.__file__, json.dumps({**order, "linger_s": 1})],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        cwd="/",
        timeout=60,
    )
    outcome: dict[str, Any] = json.loads(ran.stdout)
    return outcome


def test_an_actor_runs_the_agent_and_the_code_that_were_brought(
    submit: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    order = submit()
    assert order["environment"] == {"OTHER": "kept"}
    config = carried(order["config"])
    assert hold(order, tmp_path) == {"gone": "finished", "reason": ""}
    assert Path(config.trial.code_directory, "train.py").read_text() == "print(1)\n"
    assert (Path(config.runtime) / "trial_runtime/agent/__pycache__").is_dir()


def test_why_a_node_is_unfit_is_the_reason(
    submit: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    order = submit()
    for archive in tmp_path.glob("shared/bequeath/.brought/archives/*"):
        archive.write_bytes(b"x")
    text = "the archive of the runtime is damaged: its digest is another one"
    reason = f"the agent ended with status 65: {text}"
    assert hold(order, tmp_path) == {"gone": "failed", "reason": reason}


def test_a_probe_is_no_agent(submit: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    """It needs nothing of what is brought. Mutation: it is begun as an agent."""
    order = submit(probe=ProbeQuestions("answer", (), (), "", code=False))
    assert order["arguments"] == ["-c", "the order's own"]
    assert carried(order["config"]).probe is not None


def test_a_path_of_the_users_own_is_kept(submit: Callable[..., dict[str, Any]]) -> None:
    order = submit(environment={"PYTHONPATH": "/of/the/user"})
    assert order["environment"]["PYTHONPATH"] == "/of/the/user"


def test_it_needs_a_shared_folder() -> None:
    section = RayServiceConfig.model_validate({"platform": "ray", "bringCode": True, **HERE})
    problems = list(RayPlatform().check(section, ("trainingService",), None))  # type: ignore[arg-type]
    assert [each.path for each in problems] == [("trainingService", "bringCode")]
