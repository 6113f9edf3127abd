"""Jobs of a service, and the protocol that each service fills in."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

from dispatcher.findings import Finding
from dispatcher.http_services.client import HttpAnswer, HttpClient
from dispatcher.http_services.errors import NONSENSE, Unreachable, code_in, text_in
from dispatcher.http_services.server_clock import ServerClock
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone

States = Mapping[str, AllocationState | Gone]
"""What each word of a service for the state of a job stands for; an end is a ``Gone``. A word that
is not there keeps the last known state."""

#: A job whose end is not explained by its service has reached its wall time if it ran for so much
#: less than that (seconds).
NEARLY_S = 5.0

#: Longest reason of a service that is passed on (characters).
LONGEST_REASON = 500

#: No moment is so late (milliseconds since the epoch): it is a number of something else.
_FAR_MS = 10**14

T = TypeVar("T")


class ServiceJob(NamedTuple):
    """A job as its service lists it; a thousand are made by each look.

    Attributes:
        name: that of its order.
        id: by which its service knows it.
        word: its state, in the service's word.
        reason: why it waits, or how it ended, as far as the list says it.
        created_at: by the service's clock (seconds since the epoch); None: not known. So are
            ``started_at`` and ``ended_at``.
        place: its node, for people.
        restarts: how often its service has started it again, against our will.
        mark: of its order (:attr:`JobOrder.mark`), where its service keeps one.
    """

    name: str
    id: str
    word: str
    reason: str = ""
    created_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    place: str = ""
    restarts: int = 0
    mark: str = ""


def age_of(job: ServiceJob) -> tuple[float, str]:
    """Return what jobs are sorted by, the first one first. Those of one moment go by their ids, so
    that all who ask take the same one of two for the first."""
    return (job.created_at or 0.0, job.id)


class JobEnd(NamedTuple):
    """How a job ended, in more than a word; ``gone``: None if that is as its word says."""

    gone: Gone | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JobOrder:
    """A job to be asked for.

    Attributes:
        name: unique, and the same if it is asked for again; see ``AllocationOrder.name``.
        label: the beginning of the names of all jobs of the service.
        mark: a digest of the order's ticket, by which a job is known as that of an order. No
            secret.
        script: a line for a shell (``sh -c``), which nothing secret is in and that is short. Where
            the service has secrets it names the place of :attr:`secret`
            (:attr:`JobService.secret_place`), and must be no argument of a process then.
        secret: a text for a secret of the service; empty where it has none. It is base64.
        nodes: on each of which the script is run.
        wall_s: when its service is to end it (seconds from its start); None: never.
        grace_s: how long its agent may take to end when it is asked to (seconds).
        experiment: the id of the experiment, for people.
        worker: the name of the worker, for people.
        probes: whether it only looks the place over.
    """

    name: str
    label: str
    mark: str
    script: str
    secret: str = field(default="", repr=False)
    nodes: int = 1
    wall_s: float | None = None
    grace_s: float = 0.0
    experiment: str = ""
    worker: str = ""
    probes: bool = False


#: Words about the end of a job that services have in common, and what they mean.
_ENDS = (
    (re.compile(r"pre-?empt|spot .*(reclaim|interrupt)", re.IGNORECASE), Gone.PREEMPTED),
    (re.compile(r"evict", re.IGNORECASE), Gone.EVICTED),
    (re.compile(r"node ?(is |was )?(lost|deleted|not ?ready|down)", re.IGNORECASE), Gone.NODE_LOST),
    (re.compile(r"\boom\b|oom.?kill|out ?of ?memory", re.IGNORECASE), Gone.OUT_OF_MEMORY),
)


def end_in_words(*texts: object, code: object = None) -> JobEnd:
    """How a job ended, by what its service says of it: its words, where they have a meaning for us.

    Args:
        texts: its sentences and codes, the best for people first; None and empty ones are passed
            over.
        code: the exit code; None: it is not known.
    """
    sentences = [" ".join(str(each).split()) for each in texts if each]
    everything = " ".join(sentences)
    gone = next((gone for shape, gone in _ENDS if shape.search(everything)), None)
    exits = [] if code is None else [f"exit code {code}"]
    return JobEnd(gone, ": ".join([*exits, *dict.fromkeys(sentences[:2])])[:LONGEST_REASON])


def epoch_s(milliseconds: object) -> float | None:
    """A moment in milliseconds since the epoch, as one in seconds; None: it is none."""
    if not isinstance(milliseconds, int) or not 0 < milliseconds < _FAR_MS:
        return None
    return milliseconds / 1000.0


def rows_in(answer: HttpAnswer, key: str = "", *, asked: str) -> Sequence[Mapping[str, Any]]:
    """The rows of a list. What is no list lists nobody, and so is no answer.

    Args:
        answer: of the service.
        key: of the field that has them; empty: the answer itself is the list.
        asked: what was asked, for people.

    Raises:
        Unreachable: there is no list, or no rows are in it.
    """
    fields, rows = answer.fields, answer.document
    if key and fields and (key in fields or not (code_in(fields) or text_in(fields))):
        rows = fields.get(key, [])  # what has an error in its place lists nobody
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Unreachable(f"cannot {asked}: the answer is no list")
    return rows


def sensibly(question: Callable[..., T], *arguments: object) -> T:
    """Ask a question of a :class:`JobService`, and return what it returns.

    Raises:
        Unreachable: the answer is not what its service promises, which may well be another one the
            next time. It ends nobody.
        BackendError: as the question has it.
    """
    try:
        return question(*arguments)
    except NONSENSE as error:
        where = getattr(getattr(question, "__self__", None), "where", "")
        text = f"an answer makes no sense: {type(error).__name__}: {error}"
        raise Unreachable(text[:LONGEST_REASON], where=where) from error


def found_as(name: str, job: ServiceJob | None) -> ServiceJob | None:
    """Return what was found by a name. Raises ``Unreachable``: it is another one's, or nobody's,
    such as an error in the place of an answer."""
    if job is not None and job.name != name:
        raise Unreachable(f"cannot read the job {name!r}: the answer is about {job.name[:80]!r}")
    return job


class JobService(ABC):
    """One service for one service of an experiment. Thread: one at a time.

    Methods block, and raise ``BackendError``: the errors of
    :mod:`dispatcher.http_services.errors`, which say whether asking again helps. A platform writes
    the first four, and the others as far as its service says more.

    Args:
        client: asks the service.

    Attributes:
        states: what its words stand for.
        refuses_names: whether it refuses a second job of a name (``AlreadyThere``). Where it does
            not, a job is looked for by its name before it is asked for.
        secret_place: the text that its service replaces by the secret of a job in its script;
            empty: it has no secrets, and what is secret lies in the shared folder.
        rank_variable: the variable by which it tells each node its rank.
        ends_at_wall: whether it ends jobs at their wall time itself; else their script does.
    """

    states: ClassVar[States]
    refuses_names: ClassVar[bool] = True
    secret_place: ClassVar[str] = ""
    rank_variable: ClassVar[str] = "BEQUEATH_RANK"
    ends_at_wall: ClassVar[bool] = True

    def __init__(self, client: HttpClient) -> None:
        self.client = client

    @property
    def where(self) -> str:
        """The service, for people."""
        return self.client.where

    @property
    def times(self) -> ServerClock:
        """The time as the service has it."""
        return self.client.times

    @abstractmethod
    def create(self, order: JobOrder) -> None:
        """Ask for a job. Raises ``AlreadyThere``: one of that name exists; else as
        :meth:`Allocator.submit` has it."""
        ...

    @abstractmethod
    def list(self) -> Sequence[ServiceJob]:
        """All jobs whose names begin with the label, ended ones for as long as they are known: all
        pages, in three requests at most for a thousand jobs. Those of others may be among them."""
        ...

    @abstractmethod
    def find(self, name: str) -> ServiceJob | None:
        """Return the job of that name; None if there is none. Unlike a list it lags behind
        nothing, where the service has such a question."""
        ...

    @abstractmethod
    def stop(self, job: ServiceJob, grace_s: float) -> None:
        """Have a job end, within a grace where the service knows one. One that has ended, or is not
        there, is no error."""
        ...

    def mark(self, job: ServiceJob) -> str:
        """Return the mark of a job (:attr:`JobOrder.mark`), where that is a question of its own;
        empty if nobody knows it."""
        return job.mark

    def why(self, job: ServiceJob) -> str:
        """Return why a job waits, where that is a question of its own; empty if nobody says it."""
        return ""

    def end_of(self, job: ServiceJob) -> JobEnd:
        """Return how a job ended, where that is a question of its own."""
        return JobEnd()

    def output(self, name: str) -> str:
        """Return the end of what a job has printed; empty: nothing yet. A probe that shares no
        folder answers so, where the platform says ``has_output``."""
        return ""

    def findings(self) -> Iterable[Finding]:
        """Yield what is found of the service before anything is ordered. May raise
        ``BackendError``."""
        return ()

    def remove(self, job: ServiceJob) -> None:  # noqa: B027 - not all can
        """Remove the record of a job that has ended. Does nothing unless overridden."""

    def close(self) -> None:
        """Close what is open."""
        self.client.close()


def allocation_of(
    job: ServiceJob,
    states: States,
    times: ServerClock,
    *,
    wall_s: float | None = None,
    end: JobEnd | None = None,
) -> Allocation:
    """Return a job as an allocation. Pure, but for the time.

    Args:
        job: as listed.
        states: what words stand for.
        times: the time as the service has it.
        wall_s: how long it may run.
        end: how it ended, if that was asked.
    """
    meaning = states.get(job.word, AllocationState.UNKNOWN)
    if isinstance(meaning, Gone):
        gone, reason = meaning, job.reason
        if end is not None:
            gone, reason = end.gone or gone, end.reason or reason
        if gone in (Gone.FAILED, Gone.FINISHED) and ran_out(job, wall_s):
            gone = Gone.WALL_TIME
        return Allocation(job.name, AllocationState.ENDED, reason, gone=gone, place=job.place)
    now = times.now()
    if meaning in (AllocationState.WAITING, AllocationState.STARTING):
        waiting_s = 0.0 if job.created_at is None else max(0.0, now - job.created_at)
        return Allocation(job.name, meaning, job.reason, waiting_s, place=job.place)
    ends_in_s = None
    if wall_s is not None and job.started_at is not None:
        ends_in_s = wall_s - max(0.0, now - job.started_at)
    return Allocation(job.name, meaning, job.reason, ends_in_s=ends_in_s, place=job.place)


def ran_out(job: ServiceJob, wall_s: float | None) -> bool:
    """Whether a job has run for as long as it was to (seconds), as far as that is known."""
    if wall_s is None or job.started_at is None or job.ended_at is None:
        return False
    return job.ended_at - job.started_at >= wall_s - NEARLY_S
