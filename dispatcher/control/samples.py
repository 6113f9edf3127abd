"""Resource use of trials and devices, added to the snapshot of the state. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trial_runtime.resource_wire import AttemptSample, DeviceSample, Samples


def add_samples(snapshot: dict[str, Any], samples: Mapping[str, Samples]) -> dict[str, Any]:
    """Add the newest samples of the agents to a snapshot, and return that snapshot.

    ``devices`` are all that count, with the trials that hold them; a running trial gets ``cpu``
    (percent of one core), ``rss_bytes``, ``devices`` and ``gpu_bytes``, once it was measured.

    Args:
        snapshot: as :func:`dispatcher.control.server.snapshot` makes it; changed in place.
        samples: by worker.
    """
    running = {(row["worker"], row["trial"], row["attempt"]): row for row in snapshot["running"]}
    holders: dict[tuple[str, str], list[int]] = {}
    for worker, measured in samples.items():
        for each in measured.attempts:
            row = running.get((worker, each.trial, each.attempt))
            if row is not None:
                row.update(_of_attempt(each))
                for device in each.devices:
                    holders.setdefault((worker, device), []).append(each.trial)
    snapshot["devices"] = [
        _of_device(worker, each, sorted(holders.get((worker, each.id), [])))
        for worker, measured in samples.items()
        for each in measured.devices
    ]
    return snapshot


def _of_attempt(sample: AttemptSample) -> dict[str, Any]:
    return {
        "cpu": sample.cpu,
        "rss_bytes": sample.rss_bytes,
        "devices": list(sample.devices),
        "gpu_bytes": sample.gpu_bytes,
    }


def _of_device(worker: str, sample: DeviceSample, trials: list[int]) -> dict[str, Any]:
    return {
        "worker": worker,
        "id": sample.id,
        "index": sample.index,
        "name": sample.name,
        "memory_bytes": sample.memory_bytes,
        "used_bytes": sample.used_bytes,
        "utilization": sample.utilization,
        "watts": sample.watts,
        "celsius": sample.celsius,
        "trouble": sample.trouble,
        "old_s": sample.old_s,
        "trials": trials,
    }
