"""Whole experiments on GPUs that are not there: who gets which, and what happens to them."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dispatcher.control.snapshot import HeadSnapshot
from dispatcher.core import events as e
from dispatcher.core.model import EndReason, Phase
from dispatcher.experiments.why import asked
from dispatcher.folders.status import is_led
from dispatcher.live_view.picture import picture
from dispatcher.live_view.scene import Scene
from tests.integration.experiment.conftest import Lab
from tests.support.fake_nvml import LOST, FakeDriver, Gpu, Part
from tests.support.processes import wait_until

PATIENCE_S = 120.0


@pytest.fixture
def gates(tmp_path: Path) -> Path:
    """A trial goes on once a file here has the name of what it holds, or is called ``all``."""
    folder = tmp_path / "gates"
    folder.mkdir()
    return folder


@pytest.fixture
def create(lab: Lab, trial_code: Path, gates: Path) -> Callable[..., Path]:
    """An experiment of trials that hold their devices; keys of the file, and of its service."""

    def make(service: dict[str, Any] | None = None, **keys: Any) -> Path:
        return lab.create(
            {"name": "random"},
            function="hold",
            **{
                "trialFunction": "holding:hold",
                "trialCodeDirectory": str(trial_code),
                "searchSpace": {"gates": {"_type": "choice", "_value": [str(gates)]}},
                "trialConcurrency": 4,
                "trainingService": {"platform": "local", **(service or {})},
                **keys,
            },
        )

    return make


def until(folder: Path, holds: Callable[[dict[str, Any]], Any], what: str) -> dict[str, Any]:
    """Ask the head until this holds of its answer; that answer."""
    snapshots: list[dict[str, Any] | None] = []

    def look() -> bool:
        answer = asked(folder)
        snapshots[:] = [None if answer is None else msgspec.to_builtins(answer)]
        return snapshots[0] is not None and bool(holds(snapshots[0]))

    wait_until(look, what, PATIENCE_S)
    assert snapshots[0] is not None
    return snapshots[0]


def holders(snapshot: dict[str, Any]) -> Counter[str]:
    """How many trials that have begun hold each device."""
    said = (row["last"] for row in snapshot["running"])
    return Counter(json.loads(last)["devices"] for last in said if last is not None)


def trouble_of(snapshot: dict[str, Any], device: str) -> str:
    """What is wrong with it; nothing while the head has not heard of it yet."""
    text: str = next((row["trouble"] for row in snapshot["devices"] if row["id"] == device), "")
    return text


def test_trials_share_gpus_and_keep_away_from_what_ails(
    lab: Lab, driver: FakeDriver, create: Callable[..., Path], gates: Path
) -> None:
    both = {"GPU-a": 2, "GPU-b": 2}
    driver.show(Gpu("GPU-a", load=37, used=300, celsius=64, watts=250.0), Gpu("GPU-b"))
    folder = create(
        {"maxTrialNumberPerGpu": 2, "useActiveGpu": False}, trialGpuNumber=1, maxTrialNumber=10
    )
    lab.start(folder)
    until(folder, lambda seen: holders(seen) == both, "four trials, two on each GPU")

    stranger = subprocess.Popen(["sleep", "600"])
    try:
        driver.show(Gpu("GPU-a", processes={stranger.pid: 5}), Gpu("GPU-b"))
        until(folder, lambda seen: "somebody else" in trouble_of(seen, "GPU-a"), "the stranger")
        (gates / "GPU-a").touch()  # what is there may end; nothing new comes
        until(
            folder,
            lambda seen: holders(seen) == {"GPU-b": 2} and seen["counts"]["queued"] > 0,
            "that nothing new goes to GPU-a",
        )
        (gates / "GPU-a").unlink()
    finally:
        stranger.kill()
        stranger.wait()
    driver.show(Gpu("GPU-a", load=37, used=300, celsius=64, watts=250.0), Gpu("GPU-b"))
    until(folder, lambda seen: holders(seen) == both, "that work goes on there")

    shown = until(folder, lambda seen: all("cpu" in row for row in seen["running"]), "samples")
    (device,) = [row for row in shown["devices"] if row["id"] == "GPU-a"]
    assert (device["utilization"], device["celsius"], device["watts"]) == (37, 64, 250)
    assert len(device["trials"]) == 2
    text = drawn(shown)
    assert "GPU 0" in text
    assert "37 %" in text
    assert "64 °C" in text

    driver.show(Gpu("GPU-a", error=LOST), Gpu("GPU-b"))
    until(folder, lambda seen: holders(seen) == {"GPU-b": 2}, "that its trials are ended")
    driver.show(Gpu("GPU-a"), Gpu("GPU-b"))
    until(folder, lambda seen: holders(seen) == both, "that work goes on there")
    (gates / "all").touch()
    until_over(folder)
    rows = lab.rows(folder)
    ends = Counter(row.reason for row in rows if isinstance(row, e.AttemptEnded))
    assert ends == {EndReason.FINISHED: 10, EndReason.LOST: 2}


def drawn(snapshot: dict[str, Any]) -> str:
    """What ``top`` shows of it."""
    from rich.console import Console

    console = Console(width=120, color_system=None)
    with console.capture() as captured:
        seen = HeadSnapshot.of(snapshot)
        console.print(picture(Scene("lab", seen, None, None, None), 120, 40))
    return captured.get()


def until_over(folder: Path) -> None:
    wait_until(lambda: not is_led(folder), "it is over", PATIENCE_S)


def test_parts_of_a_gpu_are_told_apart_and_a_full_one_is_left_alone(
    lab: Lab, driver: FakeDriver, create: Callable[..., Path], gates: Path
) -> None:
    split = Gpu("GPU-a", parts=[Part("MIG-1"), Part("MIG-2", place=3)])
    driver.show(split, Gpu("GPU-b", total=40_000, used=39_500))
    folder = create({"minGpuMemory": "1 GiB"}, trialGpuNumber=0.5, maxTrialNumber=4)
    lab.start(folder)
    shown = until(folder, lambda seen: sum(holders(seen).values()) == 4, "four trials")
    assert holders(shown) == {"MIG-1": 2, "MIG-2": 2}
    until(folder, lambda seen: "less free memory" in trouble_of(seen, "GPU-b"), "a word of it")
    (gates / "all").touch()
    until_over(folder)


def test_a_gpu_that_is_not_there_is_said_before_anything_starts(
    lab: Lab, driver: FakeDriver, create: Callable[..., Path]
) -> None:
    driver.show(Gpu("GPU-a"))
    folder = create({"gpuIndices": [3]}, trialGpuNumber=1, maxTrialNumber=2)
    phase, notices = lab.run(folder)
    assert phase is Phase.FAILED
    said = "gpuIndices names 3, and the GPUs of this host are: 0"
    assert any(said in notice.text for notice in notices)
    assert not any(isinstance(row, e.AttemptStarted) for row in lab.rows(folder))
