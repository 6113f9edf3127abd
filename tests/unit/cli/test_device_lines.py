"""What a live view says of devices and of what trials take."""

from __future__ import annotations

from typing import Any

from dispatcher.control.samples import add_samples
from dispatcher.control.server import snapshot
from dispatcher.control.snapshot import HeadSnapshot
from dispatcher.core import new_state
from dispatcher.core.settings import Settings
from dispatcher.live_view.picture import MOST_DEVICES, device_lines
from trial_runtime.resource_wire import AttemptSample, DeviceSample, Samples

GIB = 1 << 30


def running(trial: int, worker: str = "local", attempt: int = 1) -> dict[str, Any]:
    row = {"trial": trial, "attempt": attempt, "worker": worker}
    return {**row, "state": "running", "parent": None, "for_s": 1.0, "last": None}


def of_a_head(*rows: dict[str, Any]) -> dict[str, Any]:
    """What a head answers, with these trials."""
    empty = snapshot(new_state(Settings(slots=2, lookahead=8)), 0.0)
    return {**empty, "running": list(rows)}


def lines_of(answer: dict[str, Any]) -> list[str]:
    return [line.plain for line in device_lines(HeadSnapshot.of(answer))]


def test_samples_find_their_trials_and_devices() -> None:
    answer = of_a_head(running(1), running(2, "gpu1"), running(3, attempt=2))
    local = Samples(
        (DeviceSample("GPU-a", 0, "H100", 80 * GIB, 2 * GIB, 37.0, 300.0, 61.0),),
        (
            AttemptSample(1, 1, 150.0, GIB, ("GPU-a",), 2 * GIB),
            AttemptSample(3, 1, 1.0, 1, ("GPU-a",)),  # of an attempt that is over
        ),
    )
    add_samples(answer, {"local": local, "gpu1": Samples()})
    assert answer["running"][0]["cpu"] == 150.0
    assert answer["running"][0]["gpu_bytes"] == 2 * GIB
    assert all("cpu" not in row for row in answer["running"][1:])
    (device,) = answer["devices"]
    assert (device["worker"], device["id"], device["trials"]) == ("local", "GPU-a", [1])
    (line,) = lines_of(answer)
    assert line == "GPU 0  H100   37 %   2.0 GiB of 80.0 GiB   300 W   61 °C   trial 1"


def test_what_is_not_told_is_not_shown_and_what_is_old_or_ill_is() -> None:
    ill = DeviceSample("MIG-a", 1, "A100", trouble="is lost", old_s=12.0)
    lines = lines_of(add_samples(of_a_head(), {"a": Samples((ill,)), "b": Samples((ill,))}))
    assert [line.partition("  ")[0] for line in lines] == ["GPU a:1 part", "GPU b:1 part"]
    assert all(" old   is lost" in line and "%" not in line for line in lines)


def test_many_are_cut_and_those_in_use_come_first() -> None:
    devices = tuple(DeviceSample(f"GPU-{n}", n) for n in range(MOST_DEVICES + 3))
    busy = AttemptSample(9, 1, devices=("GPU-10",))
    lines = lines_of(add_samples(of_a_head(running(9)), {"local": Samples(devices, (busy,))}))
    assert lines[0].startswith("GPU 10")
    assert lines[0].endswith("trial 9")
    assert lines[-1] == "… and 3 more GPUs"


def test_a_snapshot_of_an_older_head_has_none() -> None:
    assert lines_of(of_a_head()) == []
