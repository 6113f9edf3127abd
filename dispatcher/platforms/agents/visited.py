"""The process of an agent that has to be visited: all visits are made in a thread of its own.

The engine's thread puts orders down and picks up what came of them. A place that cannot be
reached is tried again with growing pauses, for as long as somebody wants an agent there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from dispatcher.errors import BackendError, DispatcherError, PassingBackendError
from dispatcher.platforms.agents.process import Loss
from dispatcher.platforms.agents.visit import AgentEnded, HeadGone, VersionedVisit, Visit
from dispatcher.platforms.reasons import plain_reason
from trial_runtime.agent.config import AgentConfig
from trial_runtime.retry import growing_pause

#: Silence of an agent after which its process is looked at, and seconds between two looks.
DOUBT_S = 3.0
LOOK_EVERY_S = 5.0

#: Pauses between attempts to get somewhere (seconds). Where somebody has to change something
#: first, asking often helps nobody, and some machines bar users who fail to log in again and again.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0
HOPELESS_PAUSE_S, LONGEST_HOPELESS_PAUSE_S = 60.0, 300.0

#: An agent that ends before it is so old (seconds) is followed by the next one after a pause, and
#: by one after that after a longer one: what ended it may last, and each is reported and recorded.
SHORT_LIFE_S = 60.0

#: Attempts at a machine on which nothing of this experiment was ever started, before it is
#: reported as one that cannot be reached.
FIRST_TRIES = 3

#: Seconds between looks at the connection.
_WATCH_EVERY_S = 0.5

#: What closing a connection may take beyond its deadline.
CLOSE_S = 5.0

_log = logging.getLogger("bequeath.backends.visited")


class VisitedProcess:
    """See :class:`dispatcher.platforms.agents.process.AgentProcess`.

    Args:
        place: name of the place, for people.
        visit: makes a visit; called, and entered, in the thread.
        known: whether an agent of this experiment may run there already, with trials.
        patience_s: seconds for which such an agent is looked for before it counts as lost.
        leads: whether this head still leads: one that does not changes nothing anywhere.
    """

    def __init__(
        self,
        place: str,
        visit: Callable[[], Visit],
        *,
        known: bool,
        patience_s: float = 120.0,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self.place = place
        self.trouble = ""
        self.outdated = False
        self.ends_at = None
        self._known = known
        self._patience_s = patience_s
        self._leads = leads
        self._visit = visit
        self._lock = threading.Condition()
        # Shared with the thread, under the lock:
        self._wanted: AgentConfig | None = None
        self._pid: int | None = None
        self._condemned: set[int] = set()
        self._grace_s = 0.0  # of those
        self._loss: Loss | None = None
        self._doubted = False
        self._ask = False  # SIGTERM first
        self._end_by: float | None = None  # moment of the monotonic clock
        self._leaving = False
        # Of the thread alone:
        self._failures = 0
        self._failing_since: float | None = None
        self._hopeless = False
        self._reported = False  # that it cannot be had
        self._config_there: AgentConfig | None = None  # what the agent there has got
        self._had_at = 0.0  # when it was started or taken up
        self._fresh = True  # it was started, and by us
        self._short_lives = 0  # in a row
        self._not_before = 0.0  # when the next one may be started
        self._thread = threading.Thread(target=self._work, name=f"visits {place}", daemon=True)

    # -- the engine's thread -----------------------------------------------------------------

    def waiting(self) -> None:
        """Never: the place is there, and is ours."""

    @property
    def pid(self) -> int | None:
        """The agent's process id there."""
        return self._pid

    def ensure(self, config: AgentConfig) -> None:
        """Have an agent there from now on, sooner or later."""
        with self._lock:
            self._wanted = config
            self._lock.notify_all()
        if self._thread.ident is None and not self._leaving and self._end_by is None:
            self._thread.start()

    def look(self, silent_s: float) -> Loss | None:
        """See :meth:`AgentProcess.look`: the thread finds out."""
        with self._lock:
            loss, self._loss = self._loss, None
            if silent_s > DOUBT_S and self._pid is not None and not self._doubted:
                self._doubted = True
                self._lock.notify_all()
        return loss

    def expects(self, pid: int, ticket: str = "") -> bool | None:
        """Whether this is the one that we have launched or taken up."""
        with self._lock:
            if pid in self._condemned:
                return False
            return True if pid == self._pid else None

    def give_up(self, grace_s: float = 0.0) -> None:
        """Have it ended as soon as its machine can be reached."""
        with self._lock:
            if self._pid is not None:
                self._condemned.add(self._pid)
            self._pid = None
            self._wanted = None
            self.outdated = False
            self._grace_s = grace_s
            self._lock.notify_all()

    def terminate(self) -> None:
        """Send SIGTERM, when :meth:`end` is called."""
        with self._lock:
            self._ask = True

    def end(self, until: float) -> None:
        """Wait for its end there. Where it cannot be reached it ends by itself, when its
        ``headGrace`` is over."""
        with self._lock:
            self._end_by = until
            self._lock.notify_all()
        self._join(until + CLOSE_S)

    def leave(self) -> None:
        """Close the connection."""
        with self._lock:
            self._leaving = True
            self._lock.notify_all()
        self._join(time.monotonic() + CLOSE_S)

    def _join(self, until: float) -> None:
        if self._thread.is_alive():
            self._thread.join(max(0.0, until - time.monotonic()))
            if self._thread.is_alive():
                _log.warning("%s: still busy there; left behind", self.place)

    # -- the other thread ----------------------------------------------------------------------

    def _over(self) -> bool:
        """Whether to stop trying. An agent that we know is ended even where that takes a second
        attempt to get there."""
        if self._leaving:
            return True
        if self._end_by is None:
            return False
        return self._config_there is None or time.monotonic() >= self._end_by

    def _work(self) -> None:
        while not self._over():
            was_ending = self._end_by is not None
            try:
                with self._visit() as visit:
                    self._stay(visit)
                return
            except DispatcherError as error:
                self._failed(error)
            except HeadGone:
                return
            except BaseException as error:  # noqa: BLE001 - the top of a thread; a visit may exit
                _log.exception("%s: %s", self.place, error)
                self._failed(BackendError(f"{type(error).__name__}: {error}"))
            self._pause(was_ending)

    def _stay(self, visit: Visit) -> None:
        """Start or take up the agent, and watch it while the connection stands. Returns when it
        was ended, or this head leaves."""
        next_look = 0.0
        informed = False  # where its head is now
        while True:
            visit.check()
            if not self._leads():
                raise HeadGone
            with self._lock:
                wanted, pid, end_by = self._wanted, self._pid, self._end_by
                condemned = bool(self._condemned)
                doubted = self._doubted and time.monotonic() >= next_look
            config = self._config_there or wanted
            if self._leaving or (end_by is not None and config is None):
                return
            if end_by is not None and config is not None:
                grace_s = 0.0 if pid is None else max(0.0, end_by - time.monotonic())
                visit.end(config, grace_s, ask=self._ask)
                return
            try:
                if condemned and config is not None:
                    visit.end(config, self._grace_s, ask=False)
                    with self._lock:
                        self._condemned.clear()
                elif (
                    wanted is not None
                    and not (informed and pid is not None)
                    and time.monotonic() >= self._not_before
                ):
                    self._have(visit, wanted, pid)
                    informed = True
                elif doubted and pid is not None and config is not None:
                    next_look = time.monotonic() + LOOK_EVERY_S
                    visit.look(config)
                    with self._lock:
                        self._doubted = False
                else:
                    with self._lock:
                        if not (self._leaving or self._end_by is not None):
                            self._lock.wait(_WATCH_EVERY_S)
            except AgentEnded as end:
                self._rest()
                with self._lock:
                    self.trouble = plain_reason(end.reason)
                    self._loss = Loss(self.trouble, left_by_another=not self._fresh)
                    self._pid = self._wanted = None

    def _rest(self) -> None:
        """Let some time pass after an agent that ended soon."""
        now = time.monotonic()
        self._short_lives = self._short_lives + 1 if now - self._had_at < SHORT_LIFE_S else 0
        if self._short_lives:
            self._not_before = now + growing_pause(
                self._short_lives, FIRST_PAUSE_S, LONGEST_HOPELESS_PAUSE_S
            )

    def _have(self, visit: Visit, wanted: AgentConfig, known: int | None) -> None:
        pid = known
        if known is not None:
            visit.take_up(wanted)
        else:
            pid, self._fresh = visit.ensure(wanted)
            self._had_at = time.monotonic()
            what = "started an" if self._fresh else "took up the"
            _log.info("%s: %s agent, pid %d", self.place, what, pid)
        self._config_there = wanted
        self._known = True
        self._failures, self._failing_since, self._reported = 0, None, False
        with self._lock:  # at once: what is doubted from now on is doubted of this one
            self._doubted = False
            self.trouble = ""
            if known is None and pid is not None:
                if self._wanted is wanted:  # nobody has given it up meanwhile
                    self._pid = pid
                    self.outdated = isinstance(visit, VersionedVisit) and visit.outdated
                else:
                    self._condemned.add(pid)

    def _failed(self, error: DispatcherError) -> None:
        """Report a failure: at once where somebody has to act, else when it has lasted."""
        now = time.monotonic()
        hopeless = not isinstance(error, PassingBackendError)
        text = error.message if not error.hint else f"{error.message}; {error.hint}"
        where = f"{error.where}: " if error.where else ""
        trouble = plain_reason(f"{where}{text}")
        if trouble != self.trouble:  # not again at each of many tries
            _log.warning("%s: %s", self.place, trouble)
        self._failures += 1
        if self._failing_since is None:
            self._failing_since = now
        self._hopeless = hopeless
        with self._lock:
            self.trouble = trouble
            if self._reported or self._end_by is not None:
                return
            if self._pid is not None:
                return  # it was there, and may work: its lease is what counts
            if hopeless or (not self._known and self._failures >= FIRST_TRIES):
                self._loss = Loss(self.trouble, hopeless=True)
            elif self._known and now - self._failing_since >= self._patience_s:
                self._loss = Loss(self.trouble)
            else:
                return
            self._reported = True

    def _pause(self, was_ending: bool) -> None:
        """Wait after a failure; ``was_ending``: the attempt began after the end was asked for."""
        first, longest = FIRST_PAUSE_S, LONGEST_PAUSE_S
        if self._hopeless:
            first, longest = HOPELESS_PAUSE_S, LONGEST_HOPELESS_PAUSE_S
        until = time.monotonic() + growing_pause(self._failures, first, longest)
        with self._lock:
            while not self._over() and (left_s := until - time.monotonic()) > 0:
                if self._end_by is not None:
                    if not was_ending:
                        return  # somebody waits now: another attempt at once
                    left_s = min(left_s, max(0.0, self._end_by - time.monotonic()))
                self._lock.wait(left_s)
