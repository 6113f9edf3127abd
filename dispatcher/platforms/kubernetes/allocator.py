"""The Jobs of one service: ordered, looked at, cancelled."""

from __future__ import annotations

import logging
import time
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.http_services.server_clock import ServerClock
from dispatcher.platforms.allocations.allocation import (
    Allocation,
    AllocationOrder,
    AllocationState,
    Allocator,
    Gone,
)
from dispatcher.platforms.archives import Archives
from dispatcher.platforms.kubernetes.api.errors import (
    AlreadyThere,
    Conflict,
    NotAllowed,
    NotThere,
    Unreachable,
)
from dispatcher.platforms.kubernetes.api.mirror import Mirror
from dispatcher.platforms.kubernetes.api.server import (
    EVENTS,
    JOBS,
    PODS,
    SECRETS,
    ApiServer,
    Document,
)
from dispatcher.platforms.kubernetes.bodies import (
    CONFIG,
    JOB_OF_POD,
    SERVICE,
    TICKET,
    job_of,
    secret_of,
    ticket_of,
)
from dispatcher.platforms.kubernetes.bringing import BroughtMaps, clear_maps
from dispatcher.platforms.kubernetes.reading import (
    allocation_of,
    last_words,
    newest_warning,
    uid_of,
)
from dispatcher.platforms.kubernetes.section import KubernetesSection
from dispatcher.platforms.kubernetes.translation import config_there, order_there
from trial_runtime.agent.config import AgentConfig, encode_config

#: Seconds between two looks. They cost no request: the server says by itself what changes.
LOOK_EVERY_S = 0.5

#: How long the first look waits for a list (seconds).
LIST_S = 45.0

#: How long one that has gone is still listed, as ended, and how many of them.
GONE_S, MOST_GONE = 600.0, 1000

#: So long (seconds) a picture of pods may be behind that of their Jobs.
LATE_S = 5.0

#: Pods of one Job that have gone, which are remembered for how it ended.
MOST_LEFT = 32

#: An ended Job is removed after this time (seconds): the head has seen it, so may have people.
ENDED_S, MOST_REMOVED = 60.0, 5

#: Seconds between two questions for the events of one that waits without a reason.
EVENTS_EVERY_S = 5.0

_log = logging.getLogger("bequeath.backends.kubernetes")


class KubernetesAllocator(Allocator):
    """See :class:`dispatcher.platforms.allocations.allocation.Allocator`.

    Args:
        server: the namespace.
        section: the service's part of the file.
        label: the beginning of the names of all allocations of the service.
        token: of the share below the weights root; called when one is ordered.
        archives: packs what is brought to pods; None where it is never asked for.
        probed: the file with what a probe has found in a pod.
        clock: monotonic seconds.
    """

    look_every_s = LOOK_EVERY_S

    def __init__(
        self,
        server: ApiServer,
        section: KubernetesSection,
        label: str,
        *,
        token: Callable[[], str],
        archives: Callable[[], Archives] | None = None,
        probed: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._section = section
        self._label = label
        self._token = token
        self._clock = clock
        self._brought: BroughtMaps | None = None
        if section.bring_code and archives is not None:
            self._brought = BroughtMaps(server, section, label, archives, probed)
        self._times = ServerClock(clock)
        selector = f"{SERVICE}={label}"
        self._jobs = Mirror(server, JOBS, selector, self._times, clock=clock)
        self._pods = Mirror(server, PODS, selector, self._times, clock=clock)
        self._first: dict[str, list[str]] = {}  # the uids of the pods that a Job had first
        self._left: dict[str, list[Document]] = {}  # pods of a Job that have gone before it
        self._late: dict[str, float] = {}  # since when a Job has ended before its pods
        self._gone: dict[str, tuple[Allocation, float]] = {}  # and since when
        self._ended: dict[str, float] = {}  # Jobs that are there still, and since when
        self._events: dict[str, str] = {}  # the newest warning, by the name of its object
        self._events_at = float("-inf")
        self._pods_of: Mapping[str, Sequence[Document]] = {}

    # -- orders --------------------------------------------------------------------------------

    def submit(self, order: AllocationOrder) -> None:
        """See :meth:`Allocator.submit`."""
        try:
            there = order_there(order, self._section, token=self._token())
        except LookupError as error:
            text = f"a variable of the trials {error}"
            raise PermanentBackendError(text, where=self._server.where) from error
        sources: Sequence[Document] = ()
        if self._brought is not None and order.config.probe is None:
            there, sources = self._brought.bring(there)
        try:
            body = job_of(there, self._section, self._label, sources)
            job = self._server.create(JOBS, body).document
        except AlreadyThere:
            job = self._own(there)
        try:
            self._server.apply(SECRETS, secret_of(there, self._label, job))
        except PermanentBackendError as error:
            self._undo(order.name, error)
            raise

    def _own(self, order: AllocationOrder) -> Document:
        """The Job of that name, if it is one that a head before has ordered."""
        try:
            job = self._server.get(JOBS, order.name)
        except NotThere as error:
            raise Conflict(f"{error.message}, and was there just now", where=error.where) from error
        about = job["metadata"]
        if (about.get("annotations") or {}).get(TICKET) != ticket_of(order):
            raise PermanentBackendError(
                f"a Job {order.name!r} is in {self._server.namespace!r} that this experiment has "
                "not ordered",
                hint="remove it, if nobody needs it",
                where=self._server.where,
            )
        return job

    def _undo(self, name: str, error: PermanentBackendError) -> None:
        """Remove a Job whose Secret was refused: it would wait for ever."""
        try:
            self._server.delete(JOBS, name)
        except NotThere:
            return
        except BackendError as other:
            text = f"{error.message}; and the Job cannot be removed: {other.message}"
            raise Unreachable(text, where=error.where) from other

    def tell(self, name: str, config: AgentConfig) -> None:
        """See :meth:`Allocator.tell`: the kubelet brings it to the pod within two minutes."""
        there = config_there(config, self._section, token=self._token())
        if self._brought is not None:
            there = self._brought.named_in(there)
        content = b64encode(encode_config(there)).decode()
        try:
            self._server.merge(SECRETS, name, {"data": {CONFIG: content}})
        except NotThere:
            return

    def cancel(self, names: Sequence[str], grace_s: float) -> None:
        """See :meth:`Allocator.cancel`. Pods have a grace of their own, unless there is less."""
        for name in names:
            self._delete(name)
            for pod in self._pods_of.get(name, ()):
                own = pod.get("spec", {}).get("terminationGracePeriodSeconds")
                if _is_active(pod) and (not isinstance(own, int) or grace_s < own):
                    self._delete_pod(pod, int(grace_s))

    def _delete(self, name: str) -> None:
        try:
            self._server.delete(JOBS, name)
        except NotThere:
            return

    def _delete_pod(self, pod: Document, grace_s: int) -> None:
        try:
            self._server.delete(PODS, pod["metadata"]["name"], grace_s=grace_s)
        except NotThere:
            return

    def answer(self, order: AllocationOrder) -> str:
        """See :meth:`Allocator.answer`: the end of what its pod has printed."""
        pods = [*self._pods_of.get(order.name, ()), *self._left.get(order.name, ())]
        return "\n".join(last_words(pods))

    def clear(self) -> None:
        """See :meth:`Allocator.clear`: what was brought for all pods together."""
        if self._section.bring_code:
            clear_maps(self._server, self._label)

    def close(self) -> None:
        """See :meth:`Allocator.close`. Jobs that have ended, and were seen so, are removed."""
        for name in self._ended:
            self._delete_twice(name)
        self._jobs.close()
        self._pods.close()
        self._server.close()

    def _delete_twice(self, name: str) -> None:
        """Delete a Job that has ended; what cannot be, has its time to live."""
        for is_last in (False, True):
            try:
                self._delete(name)
            except PassingBackendError as error:
                if is_last:
                    _log.info("%s: it has ended, and stays for a day: %s", name, error)
            except BackendError as error:
                _log.info("%s: it has ended, and stays for a day: %s", name, error)
                return
            else:
                return

    # -- looking -------------------------------------------------------------------------------

    def look(self) -> Sequence[Allocation]:
        """See :meth:`Allocator.look`: from the pictures of Jobs and pods."""
        # Pods last: how one has ended is known before its Job's word that it has.
        jobs = {_name_of(job): job for job in self._jobs.objects(LIST_S)}
        pods: dict[str, list[Document]] = defaultdict(list)
        for pod in self._pods.objects(LIST_S):
            pods[_label_of(pod, JOB_OF_POD)].append(pod)
        self._pods_of = pods
        now = self._clock()
        for pod in self._pods.gone():
            self._left.setdefault(_label_of(pod, JOB_OF_POD), []).append(pod)
        for job in self._jobs.gone():
            self._bury(job, now)
        self._left = {name: left[-MOST_LEFT:] for name, left in self._left.items() if name in jobs}
        seen = [self._read(name, job, pods.get(name, []), now) for name, job in jobs.items()]
        for name, left in pods.items():
            if name and name not in jobs and any(map(_is_active, left)):
                seen.append(allocation_of(name, None, left, self._times))
        names = {each.name for each in seen}
        self._gone = {k: v for k, v in self._gone.items() if now - v[1] < GONE_S}
        seen += [each for name, (each, _) in self._gone.items() if name not in names]
        self._first = {name: first for name, first in self._first.items() if name in jobs}
        self._late = {name: since for name, since in self._late.items() if name in jobs}
        self._remove_ended(seen, jobs, now)
        self._ask_why(seen, pods, now)
        return seen

    def _read(self, name: str, job: Document, pods: Sequence[Document], now: float) -> Allocation:
        first = self._first.setdefault(name, [])
        nodes = job.get("spec", {}).get("parallelism", 1)
        for pod in sorted(pods, key=lambda each: str(each["metadata"].get("creationTimestamp"))):
            if len(first) < nodes and uid_of(pod) not in first:
                first.append(uid_of(pod))
        left = self._left.get(name, ())
        seen = allocation_of(
            name, job, pods, self._times, first=first, left=left, events=self._events
        )
        if seen.state is not AllocationState.ENDED or not any(map(_is_active, pods)):
            self._late.pop(name, None)
        elif now - self._late.setdefault(name, now) < LATE_S:
            return Allocation(name, AllocationState.UNKNOWN)
        return seen

    def _bury(self, job: Document, now: float) -> None:
        """Note how a Job that has gone ended, for those who have not seen it yet."""
        name = _name_of(job)
        last = allocation_of(name, job, (), self._times, left=self._left.get(name, ()))
        if last.state is not AllocationState.ENDED:
            reason = f"its Job was deleted in {self._server.namespace!r}"
            last = Allocation(name, AllocationState.ENDED, reason, gone=Gone.CANCELLED)
        if len(self._gone) < MOST_GONE:
            self._gone[name] = (last, now)
        self._ended.pop(name, None)

    def _remove_ended(
        self, seen: Sequence[Allocation], jobs: Mapping[str, Document], now: float
    ) -> None:
        for each in seen:
            if each.state is AllocationState.ENDED and each.name in jobs:
                self._ended.setdefault(each.name, now)
        due = [name for name, since in self._ended.items() if now - since >= ENDED_S]
        for name in due[:MOST_REMOVED]:
            try:
                self._delete(name)
                del self._ended[name]
            except BackendError as error:
                _log.info("%s: it has ended, and stays for now: %s", name, error)
                self._ended[name] = now

    def _ask_why(
        self, seen: Sequence[Allocation], pods: Mapping[str, Sequence[Document]], now: float
    ) -> None:
        """Ask for the warnings about one that waits without a reason: the next one, each time."""
        waits = (AllocationState.WAITING, AllocationState.STARTING)
        silent = [each.name for each in seen if each.state in waits and not each.reason]
        if not silent or now - self._events_at < EVENTS_EVERY_S:
            return
        self._events_at = now
        self._events = {k: v for k, v in self._events.items() if k in pods or k in silent}
        name = silent[int(now / EVENTS_EVERY_S) % len(silent)]
        objects = [name, *(_name_of(pod) for pod in pods.get(name, ()))]
        for each in objects[-2:]:
            fields = f"involvedObject.name={each},type=Warning"
            try:
                listed = self._server.list(EVENTS, "", fields=fields)
            except NotAllowed:
                self._events_at = float("inf")  # a right that one may do without
                return
            except BackendError:
                return
            if text := newest_warning(listed.objects):
                self._events[each] = text


def _is_active(pod: Document) -> bool:
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _name_of(document: Document) -> str:
    return str(document["metadata"]["name"])


def _label_of(document: Document, label: str) -> str:
    return str((document["metadata"].get("labels") or {}).get(label, ""))
