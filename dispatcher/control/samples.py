"""What trials and devices take, beside what the state says of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trial_runtime.resource_wire import AttemptSample, DeviceSample, Samples


def add_samples(snapshot: dict[str, Any], samples: Mapping[str, Samples]) -> dict[str, Any]:
    """Put into a snapshot what agents measured last, by worker; the same snapshot.

    ``devices`` are all that count, with the trials that hold them; a running trial gets ``cpu``
    (percent of one core), ``rss_bytes``, ``devices`` and ``gpu_bytes``, once it was measured.
    """
    running = {(row["worker"], row["trial"], row["attempt"]): row for row in snapshot["running"]}
    holders: dict[tuple[str, str], list[int]] = {}
    for worker, told in samples.items():
        for each in told.attempts:
            row = running.get((worker, each.trial, each.attempt))
            if row is not None:
                row.update(_of_attempt(each))
                for device in each.devices:
                    holders.setdefault((worker, device), []).append(each.trial)
    snapshot["devices"] = [
        _of_device(worker, each, sorted(holders.get((worker, each.id), [])))
        for worker, told in samples.items()
        for each in told.devices
    ]
    return snapshot


def _of_attempt(told: AttemptSample) -> dict[str, Any]:
    return {
        "cpu": told.cpu,
        "rss_bytes": told.rss_bytes,
        "devices": list(told.devices),
        "gpu_bytes": told.gpu_bytes,
    }


def _of_device(worker: str, told: DeviceSample, trials: list[int]) -> dict[str, Any]:
    return {
        "worker": worker,
        "id": told.id,
        "index": told.index,
        "name": told.name,
        "memory_bytes": told.memory_bytes,
        "used_bytes": told.used_bytes,
        "utilization": told.utilization,
        "watts": told.watts,
        "celsius": told.celsius,
        "trouble": told.trouble,
        "old_s": told.old_s,
        "trials": trials,
    }
