"""A picture of the objects of one kind, which a thread keeps up to date: one list, then a watch.

However many objects there are, a server is asked a few times an hour. The picture is never older
than it says: while the server cannot be asked, whoever wants it gets the reason.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from dispatcher.errors import BackendError, PassingBackendError
from dispatcher.http_services.server_clock import ServerClock
from dispatcher.platforms.kubernetes.api.errors import Busy, TooOld, Unreachable
from dispatcher.platforms.kubernetes.api.server import (
    ApiServer,
    Change,
    Document,
    ObjectKind,
    ObjectList,
    Watched,
)
from trial_runtime.retry import growing_pause

#: Pauses after a failure (seconds); longer ones where somebody has to change something first.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0
FIRST_HOPELESS_PAUSE_S, LONGEST_HOPELESS_PAUSE_S = 15.0, 60.0

#: A watch that ends sooner than this (seconds), again and again, is asked for with pauses.
SHORT_S = 5.0

#: Objects that have gone, which are kept until somebody asks for them.
MOST_GONE = 1000

_log = logging.getLogger("bequeath.backends.kubernetes")


class Mirror:
    """All objects of a kind that a selector selects. Threads: any, and one of its own.

    Args:
        server: that has them.
        kind: of the objects.
        labels: the selector.
        times: of the server; takes in the dates of its answers.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        server: ApiServer,
        kind: ObjectKind,
        labels: str,
        times: ServerClock,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server = server
        self._kind = kind
        self._labels = labels
        self._times = times
        self._clock = clock
        self._state = threading.Condition()
        self._objects: dict[str, Document] | None = None  # by name; None: never listed
        self._gone: deque[Document] = deque(maxlen=MOST_GONE)
        self._error: BackendError | None = None
        self._version = ""  # from which to watch; empty: list first
        self._failures = 0
        self._watched: Watched | None = None
        self._closed = False
        name = f"kubernetes {kind.plural}"
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def objects(self, timeout_s: float) -> list[Document]:
        """All of them as they are now. The first call waits for a list.

        Args:
            timeout_s: how long it may wait.

        Raises:
            BackendError: the reason why they are not known now.
        """
        with self._state:
            if self._thread.ident is None and not self._closed:
                self._thread.start()
            self._state.wait_for(self._is_settled, timeout_s)
            if self._error is not None:
                raise self._error
            if self._objects is None:
                text = f"no list of {self._kind.plural} within {timeout_s:.0f} s"
                raise Unreachable(text, where=self._server.where)
            return list(self._objects.values())

    def gone(self) -> list[Document]:
        """The objects that have gone since this was asked last, as they were at last."""
        with self._state:
            gone = list(self._gone)
            self._gone.clear()
            return gone

    def close(self) -> None:
        """End the thread. Nothing is changed at the server."""
        with self._state:
            self._closed = True
            watched = self._watched
            self._state.notify_all()
        if watched is not None:
            watched.end()
        if self._thread.ident is not None:
            self._thread.join(SHORT_S)

    def _is_settled(self) -> bool:
        return self._closed or self._objects is not None or self._error is not None

    # -- the thread ------------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._closed:
            began, known = self._clock(), self._version
            try:
                self._follow()
            except BackendError as error:
                if self._clock() - began >= SHORT_S:
                    self._failures = 0
                # A watch is cut at any time: it goes on from where it was, if the next one stands.
                soon = self._failures == 0 and self._watched is not None
                if isinstance(error, TooOld):  # all is listed anew, at once, if not done just now
                    self._version, soon = "", known != ""
                self._fail(error, soon=soon)
            except Exception as error:  # noqa: BLE001 - the top of a thread: else it ends in silence
                _log.exception("%s", self._thread.name)
                text = f"cannot read {self._kind.plural}: {type(error).__name__}: {error}"
                self._version = ""
                self._fail(Unreachable(text, where=self._server.where))
            else:
                if self._clock() - began < SHORT_S:
                    self._pause(FIRST_PAUSE_S)
                else:
                    self._failures = 0
            self._watched = None

    def _follow(self) -> None:
        """List if that is due, then watch until the server ends the watch."""
        if not self._version:
            self._take(self._server.list(self._kind, self._labels))
        with self._server.watch(self._kind, self._labels, self._version) as watched:
            with self._state:
                self._watched = watched
                if self._closed:
                    return
                self._error = None
                self._state.notify_all()
            self._times.note(watched.date)
            for change in watched.changes():
                self._failures = 0
                self._note(change)

    def _take(self, listed: ObjectList) -> None:
        self._times.note(listed.date)
        now = {name: each for each in listed.objects if (name := _name(each))}
        with self._state:
            before = self._objects or {}
            self._gone.extend(each for name, each in before.items() if name not in now)
            self._objects = now
            self._version = listed.version
            self._state.notify_all()

    def _note(self, change: Change) -> None:
        with self._state:
            self._version = change.version
            if self._objects is None or change.kind == "BOOKMARK":
                return
            name = _name(change.object)
            if not name:  # that is no object
                return
            if change.kind == "DELETED":
                if self._objects.pop(name, None) is not None:
                    self._gone.append(change.object)
            else:
                self._objects[name] = change.object

    def _fail(self, error: BackendError, *, soon: bool = False) -> None:
        self._failures += 1
        if soon:
            return
        passing = isinstance(error, PassingBackendError)
        first, longest = FIRST_PAUSE_S, LONGEST_PAUSE_S
        if not passing:
            first, longest = FIRST_HOPELESS_PAUSE_S, LONGEST_HOPELESS_PAUSE_S
        with self._state:
            self._error = error
            self._state.notify_all()
        pause_s = growing_pause(self._failures, first, longest)
        if isinstance(error, Busy):
            pause_s = max(pause_s, error.retry_after_s)
        self._pause(pause_s)

    def _pause(self, seconds: float) -> None:
        with self._state:
            self._state.wait_for(lambda: self._closed, seconds)


def _name(document: Document) -> str:
    with suppress(KeyError, TypeError, AttributeError):
        return str(document["metadata"]["name"])
    return ""
