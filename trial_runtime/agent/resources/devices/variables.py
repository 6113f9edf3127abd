"""Environment variables that name a trial's share to it, before its first line runs."""

from __future__ import annotations

import math

from trial_runtime import facts
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.resources.devices.seen import VISIBLE

#: Variables by which numerical libraries know how many threads they may use.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)

#: CUDA counts devices as NVML does, for programs that print numbers.
_ORDER = "CUDA_DEVICE_ORDER"

#: For programs without Python; :func:`trial_runtime.devices` is the same.
DEVICES_VARIABLE = "BEQUEATH_DEVICES"


def share_variables(config: AgentConfig, start: facts.StartAttempt) -> dict[str, str]:
    """The variables of one attempt, beside the file's; none for resources that are not counted.

    A trial that is given no device sees none, since it would use the devices of others.
    Devices have their ids, since a number may be another device after a reboot.
    """
    variables: dict[str, str] = {}
    if config.resources.count_gpus:
        ids = ",".join(start.devices)
        variables = {VISIBLE: ids, _ORDER: "PCI_BUS_ID", DEVICES_VARIABLE: ids}
    if start.cpus > 0:
        threads = str(whole_cores(start.cpus))
        own = config.trial.environment
        variables.update((name, threads) for name in THREAD_VARIABLES if name not in own)
    return variables


def whole_cores(cpus: float) -> int:
    """The number of threads that fit the cores of a trial: at least one."""
    return max(1, math.ceil(cpus - 1e-9))
