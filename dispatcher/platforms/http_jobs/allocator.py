"""Asks a service for jobs, looks at all of them by one list, and has them ended."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from dispatcher.errors import BackendError, PermanentBackendError
from dispatcher.http_services.errors import AlreadyThere, Conflict, NotThere
from dispatcher.platforms.allocations.allocation import (
    Allocation,
    AllocationOrder,
    AllocationState,
    Allocator,
    Gone,
)
from dispatcher.platforms.allocations.probe import text_of
from dispatcher.platforms.bringing import bringing_of
from dispatcher.platforms.clusters.nodes import LookPace
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.http_jobs.files import JobFiles
from dispatcher.platforms.http_jobs.jobs import (
    LONGEST_REASON,
    JobEnd,
    JobOrder,
    JobService,
    ServiceJob,
    age_of,
    allocation_of,
    found_as,
    sensibly,
)
from dispatcher.platforms.http_jobs.section import HttpJobsService
from dispatcher.platforms.http_jobs.translation import PathsThere
from trial_runtime.agent.config import AgentConfig

#: Seconds between two looks while something is expected to change, and otherwise: a look is one
#: request, of a service that others ask as well. That an agent begins, or is silent, is heard
#: without it.
QUICK_LOOK_S, SLOW_LOOK_S = 2.0, 15.0

#: So long after an order, or an end, something is expected to change (seconds).
QUICK_FOR_S = 60.0

#: Questions about single jobs in one look, beside that for the list.
MOST_QUESTIONS = 2

#: Seconds between two questions why one waits, where the list does not say it.
WHY_EVERY_S = 10.0

#: How long the end of a job is asked about that its service does not explain (seconds).
EXPLAINED_S = 60.0

#: A job that ran and is listed as waiting again has lost its place after this time (seconds): a
#: list that comes from another server may be older than the one before.
BACK_S = 20.0

#: How long a job that has gone from the list is still named, as ended (seconds).
GONE_S = 600.0

#: An ended job is removed after this time (seconds): the head has seen it, so may have people.
ENDED_S = 60.0

#: Characters of what a job has printed that are read.
MOST_OUTPUT = 64 << 10

C = TypeVar("C", bound=HttpJobsService)

_log = logging.getLogger("bequeath.backends.http_jobs")


class HttpJobsAllocator(Allocator):
    """See :class:`~dispatcher.platforms.allocations.allocation.Allocator`.

    Args:
        service: the service and its surroundings.
        jobs: asks the service.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        service: ServiceGiven[C],
        jobs: JobService,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service = service
        self._section: HttpJobsService = service.section
        self._jobs = jobs
        self._clock = clock
        self._bringing = bringing_of(self._section, service.archives)
        translation = PathsThere(self._section, jobs.rank_variable, service.token, self._bringing)
        self._files = JobFiles(service, jobs, translation)
        self._pace = LookPace(QUICK_LOOK_S, SLOW_LOOK_S, QUICK_FOR_S, clock)
        self._listed: dict[str, ServiceJob] = {}  # the one that counts of each name
        self._ended: dict[str, Allocation] = {}  # as it was seen first
        self._ended_at: dict[str, float] = {}  # those whose record is to be removed
        self._gone: dict[str, float] = {}  # of those, the ones that are not listed any more
        self._open: dict[str, float] = {}  # ends that are not explained yet, since when
        self._whys: dict[str, str] = {}  # why one waits
        self._why_at = float("-inf")
        self._stopped: set[str] = set()  # names that we have had ended
        self._ran: set[str] = set()  # names of jobs that were seen to run
        self._back: dict[str, float] = {}  # those that wait again, since when
        self._questions = 0  # in this look
        self._has_looked = False
        self._odd: set[str] = set()  # words that nobody knows

    @property
    def look_every_s(self) -> float:  # type: ignore[override]  # read before each pause
        """Seconds until the next look: few while something is expected to change."""
        return self._pace.every_s

    # -- orders ----------------------------------------------------------------------------------

    def submit(self, order: AllocationOrder) -> None:
        """See :meth:`Allocator.submit`."""
        self._pace.hurry()
        job = self._files.lay(order)
        try:
            there = None if self._jobs.refuses_names else self._find(order.name)
            if there is None:
                there = self._created(job)
            self._demand_ours(job, there)
        except PermanentBackendError:
            self._files.remove(order.name)
            raise

    def _created(self, order: JobOrder) -> ServiceJob | None:
        """Ask for a job; returns the one that has its name already, if there is one."""
        try:
            sensibly(self._jobs.create, order)
        except AlreadyThere as error:
            there = self._find(order.name)
            if there is None:
                text = f"{error.message}, and it is not there"
                hint = "its service may keep names for good"
                raise Conflict(text, hint=hint, where=error.where) from error
            return there
        return None

    def _find(self, name: str) -> ServiceJob | None:
        return found_as(name, sensibly(self._jobs.find, name))

    def _demand_ours(self, order: JobOrder, there: ServiceJob | None) -> None:
        """See that the job of that name is the one that was ordered, by a head before perhaps."""
        if there is not None and sensibly(self._jobs.mark, there) not in ("", order.mark):
            raise PermanentBackendError(
                f"there is a job {order.name!r} that this experiment has not ordered",
                hint="remove it, if nobody needs it",
                where=self._jobs.where,
            )

    def tell(self, name: str, config: AgentConfig) -> None:
        """See :meth:`Allocator.tell`: the file lies where its agent looks again. A secret of the
        service is what it was when the job began; the head keeps its port for such agents."""
        self._files.rewrite(name, config)

    # -- looks -----------------------------------------------------------------------------------

    def look(self) -> Sequence[Allocation]:
        """See :meth:`Allocator.look`: one list; and a few questions about single jobs, where it
        leaves something open."""
        self._questions = 0
        self._files.learn()
        chosen, surplus = self._chosen(sensibly(self._jobs.list))
        vanished = self._vanished(chosen)
        chosen |= {job.name: job for job in vanished if job is not None}
        now = self._clock()
        newest = sorted(chosen.values(), key=age_of, reverse=True)
        seen = [self._read(job, now) for job in newest]
        self._listed, self._has_looked = {job.name: job for job in reversed(newest)}, True
        seen += [self._ended[name] for name in self._gone if name not in chosen]
        self._end_surplus([*surplus, *self._restarted(self._listed.values())])
        self._ask_why(seen, now)
        self._remove_ended(now)
        self._forget(now)
        self._pace.settle(all(map(_is_settled, seen)))
        if self._bringing is not None:
            self._bringing.look()
        return [self._explained(each) for each in seen]

    def _chosen(
        self, listed: Iterable[ServiceJob]
    ) -> tuple[dict[str, ServiceJob], list[ServiceJob]]:
        """The job of each name, and those beside it: a service that refuses no name may have been
        asked twice. The one that was there first is the one that an agent began in; but if it ended
        before anybody saw it, since another one had taken its script, the other one is."""
        chosen: dict[str, ServiceJob] = {}
        named: dict[str, list[ServiceJob]] = {}  # by more than one job
        beginning = f"{self._service.label}-"
        for job in listed:
            if job.name.startswith(beginning):
                before = chosen.setdefault(job.name, job)
                if before is not job:
                    named.setdefault(job.name, [before]).append(job)
        surplus: list[ServiceJob] = []
        for name, jobs in named.items():
            jobs.sort(key=age_of)
            alive = [job for job in jobs if not self._has_ended(job)]
            chosen[name] = alive[0] if alive and name not in self._ended else jobs[0]
            surplus += [job for job in alive if job is not chosen[name]]
        surplus.sort(key=age_of)
        return chosen, surplus

    def _has_ended(self, job: ServiceJob) -> bool:
        return isinstance(self._jobs.states.get(job.word), Gone)

    def _vanished(self, chosen: Mapping[str, ServiceJob]) -> list[ServiceJob | None]:
        """Jobs that are listed no more, as they are: a list may lack a page, and a job that an
        administrator has deleted is gone. Of those that could not be asked about nobody knows."""
        found: list[ServiceJob | None] = []
        for name, job in self._listed.items():
            if name in chosen:
                continue
            if name in self._ended:
                self._gone.setdefault(name, self._clock())
            elif not self._may_ask():
                found.append(job._replace(word=""))  # nobody knows
            else:
                found.append(self._found_again(job))
        return found

    def _found_again(self, before: ServiceJob) -> ServiceJob | None:
        name = before.name
        try:
            job = self._find(name)
        except BackendError as error:
            _log.info("%s: it is not listed, and cannot be asked about: %s", name, error)
            return before._replace(word="")
        if job is None:
            reason = f"its job was deleted at {self._jobs.where}"
            ended = Allocation(name, AllocationState.ENDED, reason, gone=Gone.CANCELLED)
            self._ended[name] = ended
            self._gone[name] = self._clock()
            self._files.remove(name)
        return job

    def _read(self, job: ServiceJob, now: float) -> Allocation:
        """A job as an allocation; what has ended stays so, whatever a list says later."""
        name, ended = job.name, self._ended.get(job.name)
        if ended is not None:
            return ended
        if job.word not in self._jobs.states and job.word and job.word not in self._odd:
            self._odd.add(job.word)
            _log.warning("%s: a job is %r, a word that nobody knows here", name, job.word)
        if job.restarts:
            reason = "its service has started it again, in another place"
            seen = Allocation(name, AllocationState.ENDED, reason, gone=Gone.EVICTED)
            return self._note_end(seen, now)
        end = None
        if self._has_ended(job) and (end := self._end_of(job, now)) is None:
            return Allocation(name, AllocationState.UNKNOWN)
        seen = allocation_of(
            job, self._jobs.states, self._jobs.times, wall_s=self._section.wall_time, end=end
        )
        if seen.state is not AllocationState.ENDED:
            return self._forward(seen, now)
        return self._note_end(seen, now)

    def _forward(self, seen: Allocation, now: float) -> Allocation:
        """An allocation that ran and waits again, as nobody knows what: lists may be late. One that
        stays so has lost its place."""
        if seen.state is AllocationState.RUNNING:
            self._ran.add(seen.name)
            self._back.pop(seen.name, None)
            return seen
        if seen.name not in self._ran or seen.state is AllocationState.UNKNOWN:
            return seen
        is_new = now - self._back.setdefault(seen.name, now) < BACK_S
        return Allocation(seen.name, AllocationState.UNKNOWN) if is_new else seen

    def _note_end(self, seen: Allocation, now: float) -> Allocation:
        text = self._files.why_unfit(seen.name) if seen.gone is Gone.FAILED else ""
        seen = replace(seen, reason=text or seen.reason)
        self._ended[seen.name] = seen
        self._ended_at[seen.name] = now
        self._files.remove(seen.name)
        return seen

    def _end_of(self, job: ServiceJob, now: float) -> JobEnd | None:
        """How a job has ended; None: that is asked in another look. Nobody asks about what has
        ended well, or by our own doing; nor, but for the newest, about what had ended before."""
        if job.name in self._stopped or self._jobs.states[job.word] is Gone.FINISHED:
            return JobEnd()
        since = self._open.setdefault(job.name, now)
        if now - since >= EXPLAINED_S:
            return JobEnd()
        if not self._may_ask():
            return None if self._has_looked else JobEnd()
        try:
            return sensibly(self._jobs.end_of, job)
        except NotThere:
            return JobEnd()
        except BackendError as error:
            _log.info("%s: its end is not explained yet: %s", job.name, error)
            return None

    def _may_ask(self) -> bool:
        """Whether one more question belongs to this look; it is counted."""
        self._questions += 1
        return self._questions <= MOST_QUESTIONS

    def _restarted(self, jobs: Iterable[ServiceJob]) -> list[ServiceJob]:
        """Jobs that run on though they count as ended: none of them is ours any more."""
        return [job for job in jobs if job.name in self._ended and not self._has_ended(job)]

    def _end_surplus(self, jobs: Iterable[ServiceJob]) -> None:
        for job in jobs:
            if not (self._service.leads() and self._may_ask()):
                return
            try:
                sensibly(self._jobs.stop, job, 0.0)
            except BackendError as error:
                _log.info("%s: %s is to end, and goes on: %s", job.name, job.id, error)

    def _ask_why(self, seen: Sequence[Allocation], now: float) -> None:
        """Ask why one waits, where the list does not say it: the next one, each time."""
        waits = (AllocationState.WAITING, AllocationState.STARTING)
        silent = [x.name for x in seen if x.state in waits and not x.reason]
        self._whys = {name: text for name, text in self._whys.items() if name in silent}
        if not silent or now - self._why_at < WHY_EVERY_S or not self._may_ask():
            return
        self._why_at = now
        unasked = [name for name in silent if name not in self._whys]
        name = unasked[0] if unasked else silent[int(now / WHY_EVERY_S) % len(silent)]
        try:
            self._whys[name] = sensibly(self._jobs.why, self._listed[name])[:LONGEST_REASON]
        except BackendError as error:
            _log.debug("%s: nobody says why it waits: %s", name, error)

    def _explained(self, seen: Allocation) -> Allocation:
        why = self._whys.get(seen.name, "") if self._whys else ""
        return replace(seen, reason=why) if why and not seen.reason else seen

    def _remove_ended(self, now: float) -> None:
        due = [name for name, since in self._ended_at.items() if now - since >= ENDED_S]
        for name in due[:1]:
            del self._ended_at[name]
            self._remove(name)

    def _remove(self, name: str) -> None:
        job = self._listed.get(name)
        if job is None or not (self._has_ended(job) and self._service.leads()):
            return
        try:
            sensibly(self._jobs.remove, job)
        except BackendError as error:
            _log.info("%s: it has ended, and its record stays: %s", name, error)

    def _forget(self, now: float) -> None:
        """Forget what is listed no more, after a while."""
        over = [name for name, since in self._gone.items() if now - since >= GONE_S]
        for name in over:
            del self._gone[name]
            self._ended.pop(name, None)
        known = self._listed.keys() | self._gone.keys()
        self._stopped &= known
        self._ran &= known
        self._open = {k: v for k, v in self._open.items() if k in known and k not in self._ended}
        self._ended_at = {k: v for k, v in self._ended_at.items() if k in known}
        self._back = {k: v for k, v in self._back.items() if k in known}

    # -- ends ------------------------------------------------------------------------------------

    def cancel(self, names: Sequence[str], grace_s: float) -> None:
        """See :meth:`Allocator.cancel`."""
        self._pace.hurry()
        for name in names:
            job = self._listed.get(name) or self._find(name)  # ordered a moment ago, perhaps
            if job is None or self._has_ended(job):
                continue
            self._stopped.add(name)
            with contextlib.suppress(NotThere):
                sensibly(self._jobs.stop, job, grace_s)

    def answer(self, order: AllocationOrder) -> str:
        """See :meth:`Allocator.answer`: the file of the shared folder, else what was printed."""
        if self._section.shared_folder is not None:
            return text_of(order)
        try:
            return sensibly(self._jobs.output, order.name)[-MOST_OUTPUT:]
        except NotThere:
            return ""

    def close(self) -> None:
        """See :meth:`Allocator.close`. The records of jobs that have ended are removed."""
        for name in list(self._ended_at):
            self._remove(name)
        self._jobs.close()


def _is_settled(allocation: Allocation) -> bool:
    waits = allocation.state is AllocationState.WAITING and allocation.reason != ""
    return waits or allocation.state in (AllocationState.RUNNING, AllocationState.ENDED)
