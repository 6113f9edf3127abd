"""Whether a trial fits on a worker, on which of its devices, and what is missing if not.

A device is a GPU, or one MIG device of it: a GPU that is cut into MIG devices is itself no place
for a trial. CUDA shows a process one MIG device at most, so a trial of several devices gets whole
GPUs. What a worker does not count is not asked of it; GPUs and things by name it must have named.
"""

from dataclasses import dataclass, field, replace

from dispatcher.core.model import State, Trial, Worker
from dispatcher.core.queue_classes import needs_of
from dispatcher.core.resources import NO_RULES, Device, Needs, Offer, Used, WorkerRules

#: Shares are sums of fractions: ten tenths may be a little more than one.
_ROUNDING = 1e-9

_NOTHING = Offer()


@dataclass(slots=True)
class Kept:
    """A reservation on a worker for trials that come first; no later trial may use it."""

    trials: list[Trial] = field(default_factory=list)
    used: Used = field(default_factory=Used)
    devices: set[str] = field(default_factory=set)


def rules_of(state: State, worker: Worker) -> WorkerRules:
    """The experiment file's rules for a worker."""
    return state.settings.worker_rules.get(worker.id, NO_RULES)


def domain_of(state: State, worker: Worker) -> str:
    """The storage domain whose weights a worker reaches: as its backend says, or the file."""
    return worker.domain or rules_of(state, worker).domain


def recount(state: State, worker: Worker) -> None:
    """Add up what the attempts on a worker hold."""
    used, rules = Used(), rules_of(state, worker)
    for trial_id in sorted(worker.running):
        trial = state.trials[trial_id]
        needs = needs_of(state, trial)
        if needs.counted:
            used.add(needs, trial.devices, rules.share_of(needs))
    if worker.offer is not None and worker.offer.devices:
        free = _free(worker.offer)
        used.untouched = sum(device.id not in used.trials for device in free)
        used.widest = max((1 - used.shares.get(device.id, 0.0) for device in free), default=0.0)
    worker.used = used


def fit(
    needs: Needs, worker: Worker, rules: WorkerRules, kept: Kept | None = None
) -> tuple[str, ...] | None:
    """The devices on which one more such trial would run there now; None if it cannot.

    Args:
        needs: of the trial.
        worker: with what runs there.
        rules: the file's for this worker.
        kept: a reservation that the trial must leave free; None for none.
    """
    first = 0 if kept is None else len(kept.trials)
    if len(worker.running) + first >= worker.slots:
        return None
    if not needs.counted:
        return ()
    offer = worker.offer or _NOTHING
    held = [worker.used] if kept is None else [worker.used, kept.used]
    if not _is_enough(needs, offer, held):
        return None
    if not needs.gpus:
        return ()
    share = rules.share_of(needs)
    if share > worker.used.widest + _ROUNDING or (
        share == 1 and worker.used.untouched < needs.devices
    ):
        return None  # whatever its size: most looks end here
    beside = kept.devices if kept is not None else set()
    free = [
        device
        for device in suited(needs, offer)
        if not device.trouble
        and device.id not in beside
        and has_room(needs, device.id, worker.used, rules)
    ]
    if len(free) < needs.devices:
        return None
    free.sort(key=lambda device: _fullest_first(device, worker.used))
    return tuple(device.id for device in free[: needs.devices])


def fits_alone(state: State, trial: Trial, worker: Worker) -> bool:
    """Whether the trial would run there now if nothing else did.

    Args:
        state: as it is.
        trial: any.
        worker: with the offer that it has now.
    """
    needs = needs_of(state, trial)
    if not needs.counted:
        return True  # however few its slots are
    alone = replace(worker, running=set())
    recount(state, alone)
    return fit(needs, alone, rules_of(state, worker)) is not None


def _is_enough(needs: Needs, offer: Offer, held: list[Used]) -> bool:
    """Whether what is counted suffices for one more, beside what others hold."""
    cpus = needs.cpus + sum(used.cpus for used in held)
    memory_bytes = needs.memory_bytes + sum(used.memory_bytes for used in held)
    if needs.cpus and offer.cpus is not None and cpus > offer.cpus + _ROUNDING:
        return False
    if needs.memory_bytes and offer.memory_bytes is not None and memory_bytes > offer.memory_bytes:
        return False
    has = dict(offer.custom) if needs.custom else {}
    return all(
        amount + sum(used.custom.get(name, 0.0) for used in held) <= has.get(name, 0.0) + _ROUNDING
        for name, amount in needs.custom
    )


def suited(needs: Needs, offer: Offer) -> list[Device]:
    """The devices on which such a trial could ever run."""
    return [
        device
        for device in _whole(offer)
        if device.memory_bytes >= needs.gpu_memory_bytes
        and (needs.devices == 1 or not device.parent)
    ]


def has_room(needs: Needs, device: str, used: Used, rules: WorkerRules) -> bool:
    """Whether one more such trial may share the device.

    Args:
        needs: of the trial.
        device: its id.
        used: what the attempts on the worker hold.
        rules: the file's for this worker.
    """
    if rules.trials_per_device and used.trials.get(device, 0) >= rules.trials_per_device:
        return False
    return used.shares.get(device, 0.0) + rules.share_of(needs) <= 1 + _ROUNDING


def _fullest_first(device: Device, used: Used) -> tuple[bool, float, int, int, str]:
    """The sort key of devices: small trials fill devices in use first, and small devices, so that
    room is kept for large trials."""
    share = used.shares.get(device.id, 0.0)
    return (not device.parent, -share, device.memory_bytes, device.index, device.id)


def untouched(worker: Worker) -> set[str]:
    """Devices on which nothing runs and something may."""
    free = _free(worker.offer or _NOTHING)
    return {device.id for device in free if not worker.used.trials.get(device.id)}


def _free(offer: Offer) -> list[Device]:
    """Devices on which something may run, for all that their owner knows."""
    return [device for device in _whole(offer) if not device.trouble]


def may_begin(trial: Trial, worker: Worker) -> bool:
    """Whether something may still run on each of the devices that the trial was given there.
    Counted resources are not looked at: a worker that offers less of them goes on with what it
    has."""
    return {device.id for device in _free(worker.offer or _NOTHING)}.issuperset(trial.devices)


def _whole(offer: Offer) -> list[Device]:
    """MIG devices, and the GPUs that are not cut into them."""
    cut = {device.parent for device in offer.devices if device.parent}
    return [device for device in offer.devices if device.id not in cut]


def never_fits(needs: Needs, worker: Worker) -> bool:
    """Whether such a trial could not even run there if nothing else did, whatever may pass: a
    device in trouble may be out of it one day. False for a worker that has not reported its
    resources."""
    has = worker.known
    if has is None:
        return False
    custom = dict(has.custom)
    return (
        len(suited(needs, has)) < needs.devices
        or (has.cpus is not None and needs.cpus > has.cpus + _ROUNDING)
        or (has.memory_bytes is not None and needs.memory_bytes > has.memory_bytes)
        or any(amount > custom.get(name, 0.0) + _ROUNDING for name, amount in needs.custom)
    )


def most(one: Offer | None, other: Offer | None) -> Offer | None:
    """All that either of two offers has; of a device that is in both, the newer report."""
    if one is None or other is None:
        return one or other
    devices = {device.id: device for device in (*one.devices, *other.devices)}
    custom = dict(one.custom)
    for name, amount in other.custom:
        custom[name] = max(amount, custom.get(name, 0.0))
    return Offer(
        tuple(devices.values()),
        None if other.cpus is None else max(other.cpus, one.cpus or 0.0),
        None if other.memory_bytes is None else max(other.memory_bytes, one.memory_bytes or 0),
        tuple(sorted(custom.items())),
    )
