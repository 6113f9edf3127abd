"""Needs of one trial, named by its tuner: beside its parameters, and hidden from the trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NEEDS_KEY = "_needs"
"""The key of the needs in the parameters, unless the experiment's ``needsKey`` names another."""


def with_needs(
    parameters: Mapping[str, Any],
    *,
    gpus: float | None = None,
    gpu_memory_bytes: int | None = None,
    cpus: float | None = None,
    memory_bytes: int | None = None,
    resources: Mapping[str, float] | None = None,
    priority: int | None = None,
    key: str = NEEDS_KEY,
) -> dict[str, Any]:
    """Returns the parameters with the needs of this one trial; what is not given is as usual.

    The trial does not see them, nor does ``receive_trial_result``. A value that no trial can need
    is an error of the tuner's; a need that no worker can ever meet ends this one trial, before it
    starts.

    Args:
        parameters: what ``generate_parameters`` would return otherwise; not changed.
        gpus: whole ones of one host, or below 1 a share of one.
        gpu_memory_bytes: that each of these GPUs has, in all.
        cpus: CPU cores.
        memory_bytes: of the trial's processes.
        resources: amounts of what the file's ``resources`` name.
        priority: higher goes first.
        key: the experiment's ``needsKey``.

    >>> with_needs({"width": 4096}, gpus=8, priority=1)
    {'width': 4096, '_needs': {'gpus': 8, 'priority': 1}}
    """
    needs = {
        "gpus": gpus,
        "gpu_memory_bytes": gpu_memory_bytes,
        "cpus": cpus,
        "memory_bytes": memory_bytes,
        "resources": None if resources is None else dict(resources),
        "priority": priority,
    }
    return {**parameters, key: {name: value for name, value in needs.items() if value is not None}}
