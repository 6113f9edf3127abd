"""The allocations of one service, as objects of one kind: ordered, looked at, cancelled."""

from __future__ import annotations

import logging
import time
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from dispatcher.platforms.kubernetes.api.documents import name_of, uid_of
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
    PODS,
    SECRETS,
    ApiServer,
    Document,
)
from dispatcher.platforms.kubernetes.bodies import (
    CONFIG,
    SERVICE,
    TICKET,
    allocation_in,
    object_of,
    secret_of,
    ticket_of,
)
from dispatcher.platforms.kubernetes.bringing import BroughtMaps, clear_maps
from dispatcher.platforms.kubernetes.reading import allocation_of, last_words, newest_warning
from dispatcher.platforms.kubernetes.section import KubernetesService
from dispatcher.platforms.kubernetes.translation import config_there, order_there
from trial_runtime.agent.config import AgentConfig, encode_config

#: Seconds between two looks. They cost no request: the server says by itself what changes.
LOOK_EVERY_S = 0.5

#: How long the first look waits for a list (seconds).
LIST_S = 45.0

#: How long one that has gone is still listed, as ended, and how many of them.
GONE_S, MOST_GONE = 600.0, 1000

#: So long (seconds) a picture of pods may be behind that of their objects.
LATE_S = 5.0

#: Pods of one object that have gone, which are remembered for how it ended.
MOST_LEFT = 32

#: An ended object is removed after this time (seconds): the head has seen it, so may have people.
#: One whose pods go on all the same is removed at once.
ENDED_S, MOST_REMOVED = 60.0, 5

#: One that was asked to end, by a word to its controller, is deleted after this time (seconds):
#: that may be away.
STOP_S = 60.0

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
        section: KubernetesService,
        label: str,
        *,
        token: Callable[[], str],
        archives: Callable[[], Archives] | None = None,
        probed: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._section = section
        self._kind = section.allocation_kind
        self._is_served = False  # whether the server was asked for the fields of that
        self._label = label
        self._token = token
        self._clock = clock
        self._brought: BroughtMaps | None = None
        if section.bring_code and archives is not None:
            self._brought = BroughtMaps(server, section, label, archives, probed)
        self._times = ServerClock(clock)
        selector = f"{SERVICE}={label}"
        self._objects = Mirror(server, self._kind.resource, selector, self._times, clock=clock)
        self._pods = Mirror(server, PODS, selector, self._times, clock=clock)
        self._first: dict[str, list[str]] = {}  # the uids of the pods that one had first
        self._left: dict[str, list[Document]] = {}  # pods of one that have gone before it
        self._late: dict[str, float] = {}  # since when one has ended before its pods
        self._gone: dict[str, tuple[Allocation, float]] = {}  # and since when
        self._ended: dict[str, float] = {}  # those that are there still, and since when
        self._stopped: dict[str, float] = {}  # those that were asked to end, and since when
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
        if not self._is_served:
            self._kind = self._kind.served_by(self._server, self._section)
            self._is_served = True
        try:
            body = object_of(self._kind, there, self._section, self._label, sources)
            made = self._server.create(self._kind.resource, body).document
        except AlreadyThere:
            made = self._own(there)
        try:
            self._server.apply(SECRETS, secret_of(self._kind, there, self._label, made))
        except PermanentBackendError as error:
            self._undo(order.name, error)
            raise

    def _own(self, order: AllocationOrder) -> Document:
        """The object of that name, if it is one that a head before has ordered."""
        name = self._kind.object_name(order.name)
        try:
            there = self._server.get(self._kind.resource, name)
        except NotThere as error:
            raise Conflict(f"{error.message}, and was there just now", where=error.where) from error
        about = there["metadata"]
        if (about.get("annotations") or {}).get(TICKET) != ticket_of(order):
            raise PermanentBackendError(
                f"{self._server.namespace!r} has the {self._kind.word} {name!r}, which this "
                "experiment has not ordered",
                hint="remove it, if nobody needs it",
                where=self._server.where,
            )
        return there

    def _undo(self, name: str, error: PermanentBackendError) -> None:
        """Remove an object whose Secret was refused: it would wait for ever."""
        try:
            self._delete(name)
        except BackendError as other:
            word = self._kind.word
            text = f"{error.message}; and the {word} cannot be removed: {other.message}"
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
            self._stop(name)
            for pod in self._pods_of.get(name, ()):
                own = pod.get("spec", {}).get("terminationGracePeriodSeconds")
                if _is_active(pod) and (not isinstance(own, int) or grace_s < own):
                    self._delete_pod(pod, int(grace_s))

    def _stop(self, name: str) -> None:
        fields, kind, now = self._kind.stopping, self._kind, self._clock()
        if fields is None or now - self._stopped.setdefault(name, now) >= STOP_S:
            self._delete(name)
            return
        try:
            self._server.merge(kind.resource, kind.object_name(name), fields)
        except NotThere:
            return

    def _delete(self, name: str) -> None:
        try:
            named = self._kind.object_name(name)
            self._server.delete(self._kind.resource, named, first=self._kind.deletion)
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
        """See :meth:`Allocator.clear`: what has ended, and what was brought for all pods together.
        Nobody else removes objects without a time to live."""
        for each in self._objects.objects(LIST_S):
            if "deletionTimestamp" not in each["metadata"]:
                self._delete_twice(allocation_in(self._kind, each))
        self._ended.clear()
        self._stopped.clear()
        if self._section.bring_code:
            clear_maps(self._server, self._label)

    def close(self) -> None:
        """See :meth:`Allocator.close`. What has ended and was seen so, and what was asked to end,
        is removed."""
        for name in {**self._ended, **self._stopped}:
            self._delete_twice(name)
        self._objects.close()
        self._pods.close()
        self._server.close()

    def _delete_twice(self, name: str) -> None:
        """Delete one that has ended, or is about to; what cannot be stays for its time to live."""
        for is_last in (False, True):
            try:
                self._delete(name)
            except PassingBackendError as error:
                if is_last:
                    _log.info("%s: it has ended, and stays: %s", name, error)
            except BackendError as error:
                _log.info("%s: it has ended, and stays: %s", name, error)
                return
            else:
                return

    # -- looking -------------------------------------------------------------------------------

    def look(self) -> Sequence[Allocation]:
        """See :meth:`Allocator.look`: from the pictures of objects and pods."""
        # Pods last: how one has ended is known before its object's word that it has.
        kind = self._kind
        objects = {allocation_in(kind, each): each for each in self._objects.objects(LIST_S)}
        pods: dict[str, list[Document]] = defaultdict(list)
        for pod in self._pods.objects(LIST_S):
            pods[allocation_in(kind, pod, of_pod=True)].append(pod)
        self._pods_of = pods
        now = self._clock()
        for pod in self._pods.gone():
            self._left.setdefault(allocation_in(kind, pod, of_pod=True), []).append(pod)
        for gone in self._objects.gone():
            self._bury(gone, now)
        left = {name: x[-MOST_LEFT:] for name, x in self._left.items() if name in objects}
        self._left = left
        seen = [self._read(name, x, pods.get(name, []), now) for name, x in objects.items()]
        for name, orphans in pods.items():
            if name and name not in objects and any(map(_is_active, orphans)):
                seen.append(allocation_of(kind, name, None, orphans, self._times))
        names = {each.name for each in seen}
        self._gone = {k: v for k, v in self._gone.items() if now - v[1] < GONE_S}
        seen += [each for name, (each, _) in self._gone.items() if name not in names]
        self._first = {name: first for name, first in self._first.items() if name in objects}
        self._late = {name: since for name, since in self._late.items() if name in objects}
        self._remove_ended(seen, objects, pods, now)
        self._ask_why(seen, pods, now)
        return seen

    def _read(
        self, name: str, document: Document, pods: Sequence[Document], now: float
    ) -> Allocation:
        first = self._first.setdefault(name, [])
        nodes = self._kind.first_pods(document)
        for pod in sorted(pods, key=lambda each: str(each["metadata"].get("creationTimestamp"))):
            if len(first) < nodes and uid_of(pod) not in first:
                first.append(uid_of(pod))
        if self._kind.renews_pods and any(map(_is_active, pods)):
            self._left.pop(name, None)  # those before were moved, and say nothing of these
        left = self._left.get(name, ())
        seen = allocation_of(
            self._kind,
            name,
            document,
            pods,
            self._times,
            first=first,
            left=left,
            events=self._events,
        )
        if seen.state is not AllocationState.ENDED or not any(map(_is_active, pods)):
            self._late.pop(name, None)
        elif now - self._late.setdefault(name, now) < LATE_S:
            return Allocation(name, AllocationState.UNKNOWN)
        going = "deletionTimestamp" in document["metadata"]
        return replace(seen, renewed=True) if self._kind.renews_pods and not going else seen

    def _bury(self, document: Document, now: float) -> None:
        """Note how one that has gone ended, for those who have not seen it yet."""
        kind, name = self._kind, allocation_in(self._kind, document)
        left = self._left.get(name, ())
        last = allocation_of(kind, name, document, (), self._times, left=left)
        if last.state is not AllocationState.ENDED:
            reason = f"its {kind.word} was deleted in {self._server.namespace!r}"
            last = Allocation(name, AllocationState.ENDED, reason, gone=Gone.CANCELLED)
        if len(self._gone) < MOST_GONE:
            self._gone[name] = (last, now)
        self._ended.pop(name, None)
        self._stopped.pop(name, None)

    def _remove_ended(
        self,
        seen: Sequence[Allocation],
        objects: Mapping[str, Document],
        pods: Mapping[str, Sequence[Document]],
        now: float,
    ) -> None:
        for each in seen:
            if each.state is AllocationState.ENDED and each.name in objects:
                goes_on = any(map(_goes_on, pods.get(each.name, ())))
                self._ended.setdefault(each.name, now - ENDED_S if goes_on else now)
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
        kept = {self._kind.object_name(each) for each in (*pods, *silent)}
        self._events = {k: v for k, v in self._events.items() if k in kept}
        name = silent[int(now / EVENTS_EVERY_S) % len(silent)]
        asked = [self._kind.object_name(name), *map(name_of, pods.get(name, ()))]
        for each in asked[-2:]:
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


def _goes_on(pod: Document) -> bool:
    """Whether nobody ends a pod: whose object has ended it only holds a place."""
    return _is_active(pod) and "deletionTimestamp" not in pod["metadata"]
