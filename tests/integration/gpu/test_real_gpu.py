"""One look at a GPU that is there, and a trial that computes on it."""

from __future__ import annotations

import importlib.util
import os

import pytest

from trial_runtime.agent.config import ResourcesConfig
from trial_runtime.agent.processes.table import descends_from
from trial_runtime.agent.resources.devices.nvml import Nvml
from trial_runtime.agent.resources.devices.seen import NoDevices, Seen
from trial_runtime.facts import EndReason

COMPUTES = """
import torch
import trial_runtime as t
def main(params):
    assert torch.cuda.device_count() == len(t.devices()) == 1
    total = torch.ones(1000, 1000, device="cuda:0").sum().item()
    torch.cuda.synchronize()
    return total
"""


@pytest.fixture
def gpu() -> Seen:
    """The first that is free."""
    me = os.getpid()
    try:
        seen = Nvml(lambda pid: descends_from(pid, me)).look()
    except NoDevices as error:
        pytest.skip(f"needs a GPU: {error}")
    free = [each for each in seen if not each.fault and not each.uses]
    if not free:
        pytest.skip("needs a GPU that nobody uses")
    return free[0]


def test_it_is_named_measured_and_lent(gpu, head_with):
    assert gpu.id.startswith(("GPU-", "MIG-"))
    assert gpu.name
    assert gpu.memory_bytes > 1 << 30
    assert gpu.watts is not None
    assert gpu.celsius is not None
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a torch that was built for CUDA")
    head = head_with(function="train:main", resources=ResourcesConfig(count_gpus=True))
    head.script(COMPUTES)
    assert gpu.id in [each.id for each in head.hellos[-1].offer.devices]
    end = head.run(1, devices=(gpu.id,))
    assert end.reason == EndReason.FINISHED, end.text
    assert head.finals(1) == [1e6]
