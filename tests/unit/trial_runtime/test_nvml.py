"""What is asked from the driver, of a driver that is not there."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import fake_nvml
from tests.support.fake_nvml import FakeDriver, Gpu, Part
from trial_runtime.agent.resources.devices.nvml import Nvml
from trial_runtime.agent.resources.devices.seen import DeviceUse, NoDevices

MIB = 1 << 20
LIBRARY = "trial_runtime.agent.resources.devices.nvml._LIBRARY"
A = Gpu("GPU-a", total=1000, used=300, load=37, celsius=61, watts=310.5, processes={7: 200, 8: -1})
B = Gpu("GPU-b")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> FakeDriver:
    return FakeDriver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def driver(library: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """The library in this very process, under the name by which nvidia-ml-py asks for it."""
    folder = Path(library.environment["LD_LIBRARY_PATH"].partition(":")[0])
    monkeypatch.setenv(fake_nvml.STATE_VARIABLE, library.environment[fake_nvml.STATE_VARIABLE])
    pynvml = importlib.import_module("pynvml")
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(folder / "libnvidia-ml.so.1")))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    yield library
    library.unload()


def ours(pid: int) -> bool | None:
    return {7: True, 8: None}.get(pid, False)


def test_what_a_gpu_tells(driver: FakeDriver) -> None:
    driver.show(A, B)
    seen = Nvml(ours).look()
    assert [(each.id, each.index) for each in seen] == [("GPU-a", 0), ("GPU-b", 1)]
    first = seen[0]
    assert (first.memory_bytes, first.used_bytes, first.free_bytes) == (
        1000 * MIB,
        300 * MIB,
        700 * MIB,
    )
    assert (first.utilization, first.watts, first.celsius) == (37, 310.5, 61)
    assert first.uses == (DeviceUse(7, 200 * MIB, True), DeviceUse(8, None, None))
    assert not first.fault


def test_a_split_gpu_is_its_parts(driver: FakeDriver) -> None:
    parts = [Part("MIG-1", place=1, used=5, processes={9: 5}), Part("MIG-5", place=5)]
    driver.show(Gpu("GPU-a", celsius=50, parts=parts), B)
    seen = Nvml(ours).look()
    assert [(each.id, each.index, each.parent) for each in seen] == [
        ("MIG-1", 0, "GPU-a"),
        ("MIG-5", 0, "GPU-a"),
        ("GPU-b", 1, ""),
    ]
    assert (seen[0].celsius, seen[0].utilization, seen[0].used_bytes) == (50, None, 5 * MIB)
    assert seen[0].uses == (DeviceUse(9, 5 * MIB, False),)
    assert seen[1].uses == ()


@pytest.mark.parametrize(
    "error, word, lost",
    [
        (fake_nvml.LOST, "lost", True),
        (fake_nvml.NEEDS_RESET, "reset", True),
        (fake_nvml.UNKNOWN, "Unknown", False),
    ],
)
def test_a_device_that_ails_keeps_its_name(
    driver: FakeDriver, error: int, word: str, lost: bool
) -> None:
    nvml = Nvml(ours)
    driver.show(A, B)
    nvml.look()
    driver.show(Gpu("GPU-a", error=error), B)
    seen = nvml.look()
    assert [each.id for each in seen] == ["GPU-a", "GPU-b"]
    assert (word in seen[0].fault, seen[0].lost, seen[1].fault) == (True, lost, "")
    driver.show(A, B)
    assert [each.fault for each in nvml.look()] == ["", ""]


def test_one_that_is_gone_is_told_and_may_come_back(driver: FakeDriver) -> None:
    nvml = Nvml(ours)
    driver.show(A, B)
    nvml.look()
    driver.show(A)
    gone = nvml.look()[1]
    assert (gone.id, gone.lost, gone.fault) == ("GPU-b", True, "is not there any more")
    driver.show(A, B)
    assert not nvml.look()[1].fault


def test_one_that_gave_its_number_to_another_is_forgotten(driver: FakeDriver) -> None:
    nvml = Nvml(ours)
    driver.show(A, B)
    nvml.look()
    driver.show(B)
    assert [each.id for each in nvml.look()] == ["GPU-b"]


def test_without_a_driver_no_module_is_asked_for(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a host without GPUs is told to install nvidia-ml-py."""
    folder = Path(driver.environment["LD_LIBRARY_PATH"].partition(":")[0])
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(LIBRARY, "libnone.so.1")
    with pytest.raises(NoDevices, match=r"no GPU driver: libnone\.so\.1: cannot open"):
        Nvml(ours).look()
    monkeypatch.setattr(LIBRARY, str(folder / "libnvidia-ml.so.1"))
    with pytest.raises(NoDevices, match="nvidia-ml-py is not installed"):
        Nvml(ours).look()


def test_no_driver_is_said_and_found_when_it_comes(driver: FakeDriver) -> None:
    nvml = Nvml(ours)
    with pytest.raises(NoDevices, match="no GPU driver: Driver Not Loaded"):
        nvml.look()
    driver.show(A)
    assert [each.id for each in nvml.look()] == ["GPU-a"]
    driver.show(A, fault=fake_nvml.NOT_LOADED)
    with pytest.raises(NoDevices):
        nvml.look()
    driver.show(A)
    assert [each.id for each in nvml.look()] == ["GPU-a"]
