"""How jobs ended that the list lacks: one question to Slurm's accounting, where there is one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from dispatcher.errors import BackendError
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState
from dispatcher.platforms.slurm.bursts import Bursts
from dispatcher.platforms.slurm.listing import Job
from dispatcher.platforms.slurm.states import allocation_of, has_ended

#: So far back (in words of Slurm) a job may have begun that is asked for.
SINCE = "now-7days"

#: Accounting lags behind: so long (seconds) a job that was listed may be without an end there, and
#: so often (seconds) it is asked.
LAGS_S, EVERY_S = 60.0, 5.0

#: What ``sacct`` says where nobody keeps accounts.
_OFF = "accounting storage is disabled"


def ends_command(user: str, names: Collection[str]) -> list[str]:
    """The command that tells the states of jobs, all in one question.

    Args:
        user: a name or a number.
        names: of the jobs.
    """
    return [
        *("sacct", "--allocations", "--noheader", "--parsable2", f"--user={user}"),
        *(f"--starttime={SINCE}", f"--name={','.join(names)}", "--format=JobName,State,JobID"),
    ]


def read_ends(text: bytes) -> Iterator[Job]:
    """Read the jobs in the output of :func:`ends_command`."""
    for line in text.decode(errors="replace").splitlines():
        name, *others = line.split("|")
        if len(others) == 2:
            state, number = others  # such as "CANCELLED by 0"
            yield Job(number, name, state.partition(" ")[0])


def is_switched_off(error: BackendError) -> bool:
    """Whether this complaint of ``sacct`` means that nobody keeps accounts."""
    return _OFF in error.message


class Vanished:
    """The jobs that were listed and are so no more, until accounting says how they ended.

    Args:
        ask: runs a command; its output. Raises ``BackendError``.
        bursts: the arrays of this service.
        user: whose jobs are ours there.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        ask: Callable[[Sequence[str]], bytes],
        bursts: Bursts,
        user: Callable[[], str],
        clock: Callable[[], float],
    ) -> None:
        self._ask = ask
        self._bursts = bursts
        self._user = user
        self._clock = clock
        self._since: dict[str, float] = {}
        self._next = float("-inf")
        self._off = False

    def __bool__(self) -> bool:
        return bool(self._since)

    def compare(self, before: Mapping[str, Job], now: Collection[str]) -> None:
        """Take in a list.

        Args:
            before: by name, the jobs that were listed by the look before and were not to end.
            now: the names that are listed.
        """
        for name in now:
            self._since.pop(name, None)
        if not self._off:
            gone = (name for name, job in before.items() if not has_ended(job) and name not in now)
            self._since.update({name: self._clock() for name in gone if name not in self._since})

    def allocations(self) -> list[Allocation]:
        """Return what is known: how they ended, or that nobody knows yet. One that has no end for
        long is left out."""
        now = self._clock()
        self._since = {name: at for name, at in self._since.items() if now - at < LAGS_S}
        ended: dict[str, Job] = {}
        if self._since and now >= self._next:
            self._next = now + EVERY_S
            ended = self.ends_of(self._since)
            for name in ended:
                del self._since[name]
        unknown = [Allocation(name, AllocationState.UNKNOWN) for name in self._since]
        return [allocation_of(job) for job in ended.values()] + unknown

    def ends_of(self, names: Iterable[str]) -> dict[str, Job]:
        """Ask which of these have ended; these by name."""
        asked = set(names)
        if self._off or not asked:
            return {}
        try:
            known = sorted(asked | self._bursts.names())
            text = self._ask(ends_command(self._user(), known))
        except BackendError as error:
            if is_switched_off(error):
                self._off = True
                self._since.clear()
            return {}
        jobs = {job.name: job for job in self._bursts.tell_apart(read_ends(text))}
        return {name: job for name, job in jobs.items() if name in asked and has_ended(job)}
