"""Which devices may take something new, which count at all, and a driver that hangs."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from tests.support.processes import wait_until
from tests.support.workers import LOCAL
from trial_runtime import facts, wire
from trial_runtime.agent.base.loop import Timers, Watch
from trial_runtime.agent.config import AgentConfig, ResourcesConfig, TrialSpec
from trial_runtime.agent.resources.devices.judging import Judge
from trial_runtime.agent.resources.devices.seen import (
    DeviceUse,
    NoDevices,
    Seen,
    missing_indices,
    visible,
)
from trial_runtime.agent.resources.devices.variables import share_variables
from trial_runtime.agent.resources.devices.watching import DeviceWatch
from trial_runtime.endpoint import Endpoint

GIB = 1 << 30

#: So long no look takes, however busy the machine (seconds).
NEVER_SLOW_S = 3600.0
A = Seen("GPU-aa", 0, memory_bytes=10 * GIB, free_bytes=9 * GIB)
B = Seen("GPU-ab", 1, memory_bytes=10 * GIB, free_bytes=9 * GIB)
M = Seen("MIG-1", 2, parent="GPU-c", free_bytes=9 * GIB)


def judge(indices: tuple[int, ...] | None = None, **more: Any) -> Judge:
    return Judge(indices, **{"use_active": False, "min_free_bytes": 0, **more})


def troubles(told: list[wire.DeviceMessage]) -> list[bool]:
    return [bool(each.trouble) for each in told]


def used(*uses: DeviceUse, device: Seen = A) -> Seen:
    return replace(device, uses=uses)


def test_a_stranger_counts_when_it_is_seen_twice() -> None:
    one = judge()
    stranger = used(DeviceUse(7, None, False))
    assert troubles(one.judge([A, B], {})) == [False, False]
    assert troubles(one.judge([stranger, B], {})) == [False, False]
    assert troubles(one.judge([stranger, B], {})) == [True, False]
    assert troubles(one.judge([used(DeviceUse(8, None, False)), B], {})) == [False, False]
    assert troubles(one.judge([A, B], {})) == [False, False]


def test_at_the_first_look_once_is_enough() -> None:
    assert troubles(judge().judge([used(DeviceUse(7, None, False))], {})) == [True]


def test_our_own_are_no_strangers_and_active_gpus_may_be_asked_for() -> None:
    assert troubles(judge().judge([used(DeviceUse(7, None, True))], {})) == [False]
    assert troubles(judge(use_active=True).judge([used(DeviceUse(7, None, False))], {})) == [False]


def test_who_cannot_be_told_counts_only_where_nothing_of_ours_runs() -> None:
    unknown = used(DeviceUse(7, None, None))
    assert troubles(judge().judge([unknown], {})) == [True]
    assert troubles(judge().judge([unknown], {A.id: True})) == [False]


@pytest.mark.parametrize("held, full", [({}, True), ({A.id: False}, True), ({A.id: True}, False)])
def test_free_memory_matters_where_something_might_come(held: dict[str, bool], full: bool) -> None:
    assert troubles(judge(min_free_bytes=9 * GIB + 1).judge([A], held)) == [full]
    assert troubles(judge(min_free_bytes=9 * GIB).judge([A], held)) == [False]


def test_only_the_indices_of_the_file_count_and_a_fault_is_told() -> None:
    lost = A.with_fault("is lost", lost=True)
    told = judge((0, 2)).judge([lost, B, M], {})
    assert [(each.id, each.parent, each.trouble) for each in told] == [
        ("GPU-aa", "", "is lost"),
        ("MIG-1", "GPU-c", ""),
    ]


@pytest.mark.parametrize(
    "setting, ids",
    [
        (None, ["GPU-aa", "GPU-ab", "MIG-1"]),
        ("1,0", ["GPU-ab", "GPU-aa"]),
        ("GPU-aa", ["GPU-aa"]),
        ("GPU-a", ["GPU-aa", "GPU-ab"]),
        ("GPU-c", ["MIG-1"]),
        ("2", ["MIG-1"]),
        ("0,9,1", ["GPU-aa"]),
        ("", []),
        ("-1", []),
    ],
)
def test_what_cuda_visible_devices_lets_through(setting: str | None, ids: list[str]) -> None:
    assert [each.id for each in visible([A, B, M], setting)] == ids


def test_indices_that_are_not_there_are_named() -> None:
    assert not missing_indices([A, B], [1, 0])
    assert missing_indices([A, B], [1, 5, 6]) == (
        "gpuIndices names 5, 6, and the GPUs of this host are: 0, 1"
    )
    assert missing_indices([], [0]).endswith("none")


class Driver:
    """Says what a test puts in; hangs while it should."""

    def __init__(self) -> None:
        self.says: tuple[Seen, ...] | Exception = (A, B)
        self.answers = threading.Event()
        self.answers.set()
        self.asked = threading.Event()  # set while somebody looks

    def look(self) -> tuple[Seen, ...]:
        said = self.says  # as it is when the look begins
        self.asked.set()
        self.answers.wait(120)
        self.asked.clear()
        if isinstance(said, Exception):
            raise said
        return said


class Loop:
    """The agent's loop, as far as devices need one."""

    def __init__(
        self, told: ResourcesConfig | None = None, *, slow_s: float = NEVER_SLOW_S, **more: Any
    ) -> None:
        self.watch, self.timers, self.driver = Watch(), Timers(), Driver()
        self.changes = 0
        self.devices = DeviceWatch(
            told or ResourcesConfig(count_gpus=True),
            self.watch,
            self.timers,
            dict,
            self._changed,
            nvml=self.driver,
            every_s=0.01,
            slow_s=slow_s,
            **more,
        )

    def _changed(self) -> None:
        self.changes += 1

    def until(self, holds: Any) -> None:
        def turned() -> Any:
            self.watch.dispatch()
            self.timers.fire(time.monotonic())
            return holds()

        wait_until(turned, "it comes to that")

    def troubles(self) -> list[str]:
        return [each.trouble for each in self.devices.offered]


def test_a_driver_that_hangs_makes_nothing_wait_and_is_told() -> None:
    loop = Loop(slow_s=0.05)
    loop.devices.start()
    loop.until(lambda: loop.devices.trouble == "")
    assert loop.troubles() == ["", ""]
    loop.driver.answers.clear()
    loop.until(lambda: loop.troubles()[0] == "the GPU driver does not answer")
    assert loop.devices.old_s > 0
    changes = loop.changes
    for _ in range(20):
        loop.timers.fire(time.monotonic())
    assert loop.changes == changes  # said once
    loop.driver.answers.set()
    loop.until(lambda: loop.troubles() == ["", ""])
    assert loop.devices.old_s == 0


def test_a_driver_that_hangs_from_the_start_passes() -> None:
    loop = Loop(slow_s=0.05)
    loop.driver.answers.clear()
    loop.devices.start()
    loop.until(lambda: loop.devices.trouble)
    assert not loop.devices.hopeless
    loop.driver.answers.set()
    loop.until(lambda: loop.devices.trouble == "")
    assert loop.troubles() == ["", ""]


def test_without_a_driver_there_are_no_gpus_and_what_needs_them_has_no_hope() -> None:
    loop = Loop()
    loop.driver.says = NoDevices("no GPU driver: none")
    loop.devices.start()
    loop.until(lambda: loop.devices.trouble == "")
    assert loop.devices.offered == ()
    needing = Loop(ResourcesConfig(count_gpus=True, must_have_gpus=True))
    needing.driver.says = NoDevices("no GPU driver: none")
    needing.devices.start()
    needing.until(lambda: needing.devices.trouble)
    assert (
        needing.devices.trouble
        == "trials need GPUs (trialGpuNumber or gpuNum is not 0): no GPU driver: none"
    )
    assert needing.devices.hopeless


def test_once_it_has_joined_a_host_stays_whatever_its_devices_do() -> None:
    loop = Loop(ResourcesConfig(count_gpus=True, must_have_gpus=True, gpu_indices=(0, 1)))
    loop.devices.start()
    loop.until(lambda: loop.devices.trouble == "")
    loop.driver.says = NoDevices("the GPU driver cannot be asked: gone")
    loop.until(lambda: "cannot be asked" in loop.troubles()[0])
    loop.driver.says = (A,)
    loop.until(lambda: [each.id for each in loop.devices.offered] == ["GPU-aa"])
    assert loop.devices.trouble == ""
    assert loop.devices.is_lost("GPU-ab")


def test_what_was_lent_to_this_process_is_all_there_is() -> None:
    told = ResourcesConfig(count_gpus=True, must_have_gpus=True)
    loop = Loop(told, visible_devices="1")
    loop.devices.start()
    loop.until(lambda: loop.devices.trouble == "")
    assert [each.id for each in loop.devices.offered] == ["GPU-ab"]
    none = Loop(told, visible_devices="")
    none.devices.start()
    none.until(lambda: none.devices.trouble)
    assert "CUDA_VISIBLE_DEVICES=" in (none.devices.trouble or "")


def test_who_asks_is_answered_by_a_look_that_began_later() -> None:
    loop = Loop()
    loop.devices.start()
    loop.until(lambda: loop.devices.trouble == "")
    loop.driver.answers.clear()
    loop.until(loop.driver.asked.is_set)
    seen: list[bool] = []
    loop.driver.says = (A.with_fault("is lost", lost=True), B)
    loop.devices.after_a_look(lambda: seen.append(loop.devices.is_lost(A.id)))
    assert not seen
    loop.driver.answers.set()
    loop.until(lambda: seen)
    assert seen == [True]


def config(**changes: Any) -> AgentConfig:
    trial = TrialSpec("/code", environment=changes.pop("environment", {}))
    return AgentConfig("local", 1, Endpoint("ipc:///n"), 1, "/r", "/e", trial, "/w", **changes)


def test_the_variables_of_a_share() -> None:
    counting = config(resources=ResourcesConfig(count_gpus=True))
    start = facts.StartAttempt(LOCAL, 1, 1, "{}", devices=("GPU-a", "GPU-b"), cpus=1.5)
    told = share_variables(counting, start)
    assert told["CUDA_VISIBLE_DEVICES"] == told["BEQUEATH_DEVICES"] == "GPU-a,GPU-b"
    assert told["OMP_NUM_THREADS"] == "2"
    assert (
        share_variables(counting, facts.StartAttempt(LOCAL, 1, 1, "{}"))["CUDA_VISIBLE_DEVICES"]
        == ""
    )
    assert share_variables(config(), facts.StartAttempt(LOCAL, 1, 1, "{}")) == {}
    own = config(environment={"OMP_NUM_THREADS": "7"})
    assert "OMP_NUM_THREADS" not in share_variables(own, start)
