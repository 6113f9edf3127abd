"""The troubles of an experiment, whether or not they keep anything from running."""

from dispatcher.core.model import LowDisk, State, Worker
from dispatcher.core.resources import Device
from dispatcher.core.settings import WORKER_LOSSES_IN_A_ROW


def troubles(state: State, now: float) -> list[str]:
    """One sentence for each trouble; empty for an experiment in good health."""
    texts = [low_disk_text(place, low) for place, low in state.low_disks.items()]
    texts.extend(trouble_of(worker, now) for worker in state.workers.values())
    for worker in state.workers.values():
        if worker.usable and worker.offer is not None:
            texts.extend(_device_text(worker, device) for device in worker.offer.devices)
    return [text for text in texts if text]


def _device_text(worker: Worker, device: Device) -> str:
    which = "a MIG device of GPU" if device.parent else "GPU"
    text = f"worker {worker.id} puts no trials on {which} {device.index}: {device.trouble}"
    return text if device.trouble else ""


def trouble_of(worker: Worker, now: float) -> str:
    """Why a worker takes no, or not all, attempts; empty if it does."""
    health = worker.health
    if worker.excluded:
        return f"worker {worker.id} takes no trials: {worker.trouble}; it goes on looking"
    if worker.waits_since is not None:
        return waits_text(worker, now) if worker.waiting else ""
    if not worker.alive:
        why = f" ({worker.trouble})" if worker.trouble else ""
        return f"worker {worker.id} is not there{why}; it is being started"
    if worker.suspect_since is not None:
        silent_s = now - worker.suspect_since
        return f"worker {worker.id} has been silent for {silent_s:.0f} s, nothing new goes there"
    if health.quarantined_until is not None:
        left_s = max(0.0, health.quarantined_until - now)
        return f"worker {worker.id} is left out for {left_s:.0f} s more, trials failed there"
    if health.on_probation:
        probe = "" if health.probe is None else f", trial {health.probe}"
        return f"worker {worker.id} gets one attempt at a time until one ends well{probe}"
    return ""


def waits_text(worker: Worker, now: float) -> str:
    """Why a worker waits for its place, and since when."""
    if not worker.waiting:
        return f"worker {worker.id} is not needed: its place is asked for when trials are queued"
    since = _since(now - (worker.waits_since or now))
    return f"worker {worker.id} waits for its place since {since}: {worker.waiting}"


def _since(seconds: float) -> str:
    """A time in the queue, which may be days."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def is_given_up(worker: Worker) -> bool:
    """Whether the worker was lost so often that nobody counts on it; it may still come back."""
    return not worker.alive and worker.losses >= WORKER_LOSSES_IN_A_ROW


def low_disk_text(place: str, low: LowDisk) -> str:
    """The sentence for a disk that is nearly full: how much is left, and how much is kept in
    reserve."""
    return (
        f"no new trials: the disk of {place} has {_mb(low.free_bytes)} left and "
        f"{_mb(low.needed_bytes)} are kept in reserve; free space there, and they start again"
    )


def _mb(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):,.0f} MB"
