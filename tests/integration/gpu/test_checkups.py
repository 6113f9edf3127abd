"""What ``doctor`` and ``hosts check`` say of GPUs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dispatcher.cli.checkup import check_gpus
from dispatcher.findings import Finding, Severity
from dispatcher.remote_python.gpu_findings import AllGpus, GpuFacts, judge_gpus
from dispatcher.remote_python.on_host import facts
from dispatcher.remote_python.runner import ask_here
from tests.support.fake_nvml import LOST, FakeDriver, Gpu, Part


def looked() -> AllGpus:
    """What the program says that is sent to machines."""
    return ask_here("gpus", {}, AllGpus, limit_s=240)


def test_a_machine_says_what_it_has(driver: FakeDriver) -> None:
    driver.show(Gpu("GPU-a", name="H100", total=81_920), Gpu("GPU-b", name="H100", total=81_920))
    told = looked()
    assert judge_gpus(told, wanted=True, indices=()) == Finding(
        "gpus", Severity.OK, "2 × H100 (80.0 GiB)"
    )
    missing = judge_gpus(told, wanted=True, indices=(1, 2))
    assert (missing.severity, missing.hint) == (
        Severity.PROBLEM,
        "gpuIndices names 2; GPUs there are 0 to 1",
    )
    (finding,) = check_gpus()
    assert (finding.severity, finding.text) == (Severity.OK, "2 × H100 (80.0 GiB)")


@pytest.mark.parametrize(
    "wanted, indices, gib, hint",
    [
        (2, (), 80, ""),
        (0.5, (1,), 0, ""),
        (8, (), 0, "each trial needs 8, and 2 of these may be lent to one"),
        (2, (1,), 0, "each trial needs 2, and 1 of these may be lent to one"),
        (1, (), 81, "each trial needs 1 of at least 81.0 GiB, and 0 of these may be lent to one"),
    ],
)
def test_what_no_trial_can_get_there_is_said(
    wanted: float, indices: tuple[int, ...], gib: int, hint: str
) -> None:
    """Mutations: GPUs are not counted; those that gpuIndices leaves out count."""
    told = AllGpus([GpuFacts("H100", 80 << 30)] * 2, pynvml=True)
    found = judge_gpus(told, wanted=wanted, indices=indices, memory=gib << 30)
    assert (found.severity is Severity.PROBLEM, found.hint) == (bool(hint), hint)


@pytest.mark.parametrize(
    "wanted, gib, hint",
    [
        (1, 0, ""),
        (0.5, 30, ""),
        (1, 50, "each trial needs 1 of at least 50.0 GiB, and 0 of these may be lent to one"),
        (2, 0, "each trial needs 2, and 1 of these may be lent to one"),
    ],
)
def test_parts_count_in_place_of_their_gpu(
    driver: FakeDriver, wanted: float, gib: int, hint: str
) -> None:
    """Mutations: a GPU that is split counts itself; a trial of two may have two parts."""
    split = Gpu("GPU-a", total=80_000, parts=[Part("MIG-1"), Part("MIG-2", place=3)])
    driver.show(split, Gpu("GPU-b"))
    found = judge_gpus(looked(), wanted=wanted, indices=(), memory=gib << 30)
    assert found.text == "1 × Fake-GPU (78.1 GiB, split in 2), 1 × Fake-GPU (39.1 GiB)"
    assert (found.severity is Severity.PROBLEM, found.hint) == (bool(hint), hint)


def test_a_driver_is_found_by_its_library(driver: FakeDriver) -> None:
    """Where there is one nvidia-ml-py is brought, also under WSL, which has no /dev/nvidiactl.

    Mutation: only the device file is looked for.
    """

    def says(more: str) -> bool:
        text = f"{Path(facts.__file__).read_text()}\n{more}\nprint(python_facts()['gpus'])"
        command = [sys.executable, "-I", "-c", text]
        return "True" in subprocess.run(command, capture_output=True, check=True, text=True).stdout

    assert says("")
    assert says("DRIVER = 'libnone.so.1'") == Path("/dev/nvidiactl").exists()


def test_a_lost_gpu_is_said(driver: FakeDriver) -> None:
    driver.show(Gpu("GPU-a", name="H100"), Gpu("GPU-b", error=LOST))
    found = judge_gpus(looked(), wanted=True, indices=())
    assert found.severity is Severity.PROBLEM
    assert "GPU 1: GPU is lost" in found.text
    assert [finding.severity for finding in check_gpus()] == [Severity.PROBLEM, Severity.OK]


@pytest.mark.parametrize("wanted", [False, True])
def test_a_machine_without_a_driver(driver: FakeDriver, wanted: bool) -> None:
    driver.unload()
    found = judge_gpus(looked(), wanted=wanted, indices=())
    assert (found.severity is Severity.PROBLEM, found.text) == (wanted, "none (Driver Not Loaded)")
    assert judge_gpus(looked(), wanted=0, indices=(0,)).hint.startswith("gpuIndices names some: ")
    (finding,) = check_gpus()
    assert finding.severity is Severity.OK
