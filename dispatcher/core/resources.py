"""The needs of trials and the offers of workers: plain frozen values, compared and added up.

Devices are named as the vendor names them (``GPU-…``, ``MIG-…``), never by index: an index means
another device after a reboot, or once one has fallen off the bus.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU, or one MIG device of it.

    ``trouble`` is the reason, in a few words, why nothing new may go there (a foreign process, a
    lost device); empty if something may. ``parent`` is the GPU of a MIG device.
    """

    id: str
    index: int = 0
    name: str = ""
    memory_bytes: int = 0  # in all
    free_bytes: int | None = None  # None: not reported
    parent: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """One worker's resources for trials. A number of None is not counted there; ``custom`` are
    (name, amount), sorted by name. ``cached`` are digests of weights that lie on its disk.
    ``ends_at``: the moment at which its place is taken back (seconds since the epoch), as with an
    allocation of a scheduler; None: never, or not known."""

    devices: tuple[Device, ...] = ()
    cpus: float | None = None
    memory_bytes: int | None = None
    custom: tuple[tuple[str, float], ...] = ()
    cached: tuple[str, ...] = ()
    ends_at: float | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """The resources that one trial takes while it runs.

    ``gpus`` below 1 is a share of one device, which trials share up to 1; above, whole devices of
    one host. ``gpu_memory_bytes`` is what each of them must have in all. ``priority``: higher goes
    first.
    """

    gpus: float = 0.0
    gpu_memory_bytes: int = 0
    cpus: float = 0.0
    memory_bytes: int = 0
    custom: tuple[tuple[str, float], ...] = ()
    priority: int = 0

    @property
    def counted(self) -> bool:
        """Whether it takes anything beside a slot."""
        return bool(self.gpus or self.cpus or self.memory_bytes or self.custom)

    @property
    def devices(self) -> int:
        """On how many devices it runs."""
        return int(self.gpus) if self.gpus >= 1 else int(self.gpus > 0)


@dataclass(frozen=True, slots=True)
class WorkerRules:
    """The experiment file's rules for one worker, beside what the worker itself offers.

    ``cost``: the cheaper ones are filled first. ``trials_per_device``: at most so many trials share
    a device, and one that needs whole devices takes that part of each (as NNI has it); 0: there is
    no such rule, and only shares are shared. ``domain``: workers of one storage domain reach the
    same weights. ``trials_per_place``: so many attempts begin in one place that a scheduler lends,
    and the next place is for the next ones; 0: any number.
    """

    cost: float = 0.0
    trials_per_device: int = 0
    domain: str = ""
    trials_per_place: int = 0

    def share_of(self, needs: Needs) -> float:
        """The part of each of its devices that a trial takes."""
        if needs.gpus < 1:
            return needs.gpus
        return 1 / self.trials_per_device if self.trials_per_device else 1.0


NO_RULES = WorkerRules()


@dataclass(slots=True)
class Used:
    """The resources that the attempts on a worker hold, recounted from them whenever one comes or
    goes: shares of devices that are added and taken away would not come back to zero."""

    cpus: float = 0.0
    memory_bytes: int = 0
    custom: dict[str, float] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)  # by device
    trials: dict[str, int] = field(default_factory=dict)  # by device
    untouched: int = 0  # devices on which nothing runs and something may
    widest: float = 0.0  # the largest part of a device that is free

    def add(self, needs: Needs, devices: tuple[str, ...], share: float) -> None:
        """Add one more attempt.

        Args:
            needs: of its trial.
            devices: the ids of those that it holds.
            share: the part of each of them that it takes.
        """
        self.cpus += needs.cpus
        self.memory_bytes += needs.memory_bytes
        for name, amount in needs.custom:
            self.custom[name] = self.custom.get(name, 0.0) + amount
        for device in devices:
            self.shares[device] = self.shares.get(device, 0.0) + share
            self.trials[device] = self.trials.get(device, 0) + 1


#: A trial that takes a slot and nothing else.
A_SLOT = Needs()
