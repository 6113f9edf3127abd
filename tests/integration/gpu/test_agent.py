"""An agent and the GPUs of its host: offered, watched, lent by id, given up when they are lost."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import psutil
import pytest

from tests.support.fake_nvml import LOST, Gpu, Part
from tests.support.processes import is_gone, wait_until
from trial_runtime import wire
from trial_runtime.agent.config import ResourcesConfig
from trial_runtime.facts import EndReason

MIB = 1 << 20
COUNTING = ResourcesConfig(count_gpus=True)
SEES = """
import os
from tests.support import hold

import trial_runtime as t
def main(params):
    names = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "BEQUEATH_DEVICES", "OMP_NUM_THREADS")
    t.report_intermediate({
        "default": os.getpid(),
        "devices": t.devices(),
        "cores": sorted(os.sched_getaffinity(0)),
        **{name: os.environ.get(name) for name in names},
    })
    if "until" in params:
        hold.until(params["until"])
    if params.get("fail"):
        raise RuntimeError("CUDA error: unspecified launch failure")
    return 1.0
"""


def seen_by(head: Any, trial: int) -> dict[str, Any]:
    head.until(lambda: head.metrics(trial), "its first word")
    return head.metrics(trial)[0]


def troubles(offer: wire.OfferMessage) -> dict[str, str]:
    return {each.id: each.trouble for each in offer.devices}


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_a_trial_is_told_its_share(head_with, driver, reuse):
    driver.show(Gpu("GPU-a"), Gpu("GPU-b"))
    cores = sorted(os.sched_getaffinity(0))
    head = head_with(function="train:main", reuse=reuse, resources=COUNTING)
    head.script(SEES)
    assert [each.id for each in head.hellos[-1].offer.devices] == ["GPU-a", "GPU-b"]
    assert head.hellos[-1].offer.cpus == len(cores)
    shares = [("GPU-b",), (), ("GPU-b",), ("GPU-a", "GPU-b")]
    pids = []
    for trial, devices in enumerate(shares, 1):
        assert head.run(trial, devices=devices, cpus=1.0).reason == EndReason.FINISHED
        seen = seen_by(head, trial)
        assert seen["devices"] == list(devices)
        assert seen["CUDA_VISIBLE_DEVICES"] == seen["BEQUEATH_DEVICES"] == ",".join(devices)
        assert (seen["CUDA_DEVICE_ORDER"], seen["OMP_NUM_THREADS"]) == ("PCI_BUS_ID", "1")
        assert seen["cores"] == cores[:1]
        pids.append(seen["default"])
    # A process that has used CUDA keeps to the devices it saw: others get another one.
    assert (pids[0] == pids[2]) == (reuse == "inProcess")
    assert len(set(pids)) == (3 if reuse == "inProcess" else 4)


def test_where_nobody_counts_nothing_is_touched(head_with, driver, monkeypatch):
    driver.show(Gpu("GPU-a"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    head = head_with(function="train:main")
    head.script(SEES)
    assert head.hellos[-1].offer.devices == ()
    head.run(1)
    seen = seen_by(head, 1)
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["CUDA_DEVICE_ORDER"]) == ("0", None)
    assert seen["cores"] == sorted(os.sched_getaffinity(0))


def test_an_index_that_is_not_there_is_said_and_no_trial_taken(head_with, driver):
    driver.show(Gpu("GPU-a"))
    told = ResourcesConfig(count_gpus=True, must_have_gpus=True, gpu_indices=(1,))
    head = head_with(function="train:main", resources=told)
    assert head.hellos[0].hopeless
    assert head.hellos[0].trouble == "gpuIndices names 1, and the GPUs of this host are: 0"
    driver.show(Gpu("GPU-a"), Gpu("GPU-b"))
    head.until(lambda: not head.hellos[-1].trouble, "that it joins")
    assert troubles(head.hellos[-1].offer) == {"GPU-b": ""}


def test_no_driver_where_trials_need_one(head_with, driver):
    driver.unload()
    told = ResourcesConfig(count_gpus=True, must_have_gpus=True)
    head = head_with(function="train:main", resources=told)
    assert (
        head.hellos[0].trouble
        == "trials need GPUs (trialGpuNumber or gpuNum is not 0): no GPU driver: Driver Not Loaded"
    )


def test_a_stranger_keeps_trials_away_until_it_goes(head_with, driver):
    quiet = [Gpu("GPU-a", parts=[Part("MIG-1"), Part("MIG-2", place=2)]), Gpu("GPU-b")]
    driver.show(*quiet)
    head = head_with(function="train:main", resources=COUNTING)
    head.script(SEES)
    assert troubles(head.hellos[-1].offer) == {"MIG-1": "", "MIG-2": "", "GPU-b": ""}
    assert {each.parent for each in head.hellos[-1].offer.devices} == {"GPU-a", ""}
    until = head.folder / "over"
    head.start(1, devices=("GPU-b",), parameters={"until": str(until)})
    own = seen_by(head, 1)["default"]
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        part = Part("MIG-2", place=2, processes={stranger.pid: 100})
        gpu = Gpu("GPU-a", parts=[Part("MIG-1"), part])
        driver.show(gpu, Gpu("GPU-b", load=42, celsius=70, used=900, processes={own: 800}))
        head.until(lambda: head.offers and troubles(head.offers[-1])["MIG-2"], "the stranger")
        said = f"is used by somebody else's process {stranger.pid}"
        assert troubles(head.offers[-1]) == {"MIG-1": "", "MIG-2": said, "GPU-b": ""}
    finally:
        stranger.kill()
        stranger.wait()
    driver.show(quiet[0], Gpu("GPU-b", load=42, celsius=70, used=900, processes={own: 800}))
    head.until(lambda: not troubles(head.offers[-1])["MIG-2"], "that it is free again")

    def sampled() -> Any:
        """What its trial takes, once the driver and the kernel have both been asked."""
        for beat in head.heartbeats:
            for attempt in beat.samples.attempts if beat.samples is not None else ():
                if attempt.gpu_bytes:
                    return beat.samples, attempt
        return None

    samples, attempt = head.until(sampled, "samples")
    assert (attempt.trial, attempt.devices, attempt.gpu_bytes) == (1, ("GPU-b",), 800 * MIB)
    assert attempt.rss_bytes > MIB
    device = next(each for each in samples.devices if each.id == "GPU-b")
    assert (device.used_bytes, device.utilization, device.celsius) == (900 * MIB, 42, 70)
    until.touch()
    head.end_of(1)


@pytest.mark.parametrize("fails_itself", [False, True])
def test_a_lost_gpu_is_no_fault_of_its_trial(head_with, driver, fails_itself):
    driver.show(Gpu("GPU-a"), Gpu("GPU-b"))
    head = head_with(function="train:main", resources=COUNTING, stop_grace_s=0.0)
    head.script(SEES)
    until = head.folder / "over"
    told = {"until": str(until), "fail": True}
    head.start(1, devices=("GPU-a",), parameters=told)
    head.start(2, devices=("GPU-b",), parameters=told)
    trial = psutil.Process(seen_by(head, 1)["default"])
    seen_by(head, 2)
    if fails_itself:  # before the agent has looked at its devices again
        head.process.send_signal(signal.SIGSTOP)
    driver.show(Gpu("GPU-a", error=LOST), Gpu("GPU-b"))
    if fails_itself:
        until.touch()
        wait_until(lambda: is_gone(trial), "it has failed")
        head.process.send_signal(signal.SIGCONT)
    end = head.end_of(1)
    assert end.reason == EndReason.LOST
    assert end.text.startswith("its GPU GPU-a was lost while it ran")
    until.touch()
    other = head.end_of(2)
    assert (other.reason, "CUDA error" in other.text) == (EndReason.FAILED, True)
    head.until(lambda: head.offers and "lost" in troubles(head.offers[-1])["GPU-a"])
    driver.show(Gpu("GPU-a"), Gpu("GPU-b"))
    head.until(lambda: not troubles(head.offers[-1])["GPU-a"], "that it is back")


def test_memory_that_is_short_keeps_trials_away(head_with, driver):
    driver.show(Gpu("GPU-a", total=1000))
    told = ResourcesConfig(count_gpus=True, min_gpu_memory=500 * MIB)
    head = head_with(function="train:main", resources=told)
    driver.show(Gpu("GPU-a", total=1000, used=600))
    head.until(lambda: head.offers and troubles(head.offers[-1])["GPU-a"], "that it is full")
    assert "less free memory than minGpuMemory" in troubles(head.offers[-1])["GPU-a"]
    driver.show(Gpu("GPU-a", total=1000, used=400))
    head.until(lambda: not troubles(head.offers[-1])["GPU-a"], "that it is not")


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_memory_beyond_its_bound_ends_a_trial_and_no_other(head_with, reuse):
    head = head_with(function="train:main", reuse=reuse)
    head.script(
        "from tests.support import hold\n"
        "def main(params):\n"
        "    kept = [b'x' * (1 << 20) for _ in range(params['mib'])]\n"
        "    hold.pace(params['seconds'])\n"
        "    return len(kept)\n"
    )
    head.start(1, parameters={"mib": 400, "seconds": 600}, memory_bytes=250 * MIB)
    head.start(2, parameters={"mib": 20, "seconds": 1}, memory_bytes=250 * MIB)
    end = head.end_of(1)
    assert end.reason == EndReason.OUT_OF_MEMORY
    assert "its trialMemorySize is 250 MiB" in end.text
    assert head.end_of(2).reason == EndReason.FINISHED
