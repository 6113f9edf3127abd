"""One sink fed from one experiment: each fact exactly once, whatever is killed in between.

What a sink has taken is known by its cursor, which is written when the tracker has all of it. An
error ends a :class:`Feeding` as a crash does; the next one begins at the cursor.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, cast

from dispatcher.experiment.callbacks import CallbacksConfig
from dispatcher.experiment.sink_base import SinkConfig
from dispatcher.experiment.sink_kinds import kind_of_section, resolved_secrets
from dispatcher.folders.names import SINKS_NAME
from dispatcher.folders.ownership import demand_ours
from dispatcher.queries import ExperimentReader
from dispatcher.sinks.cursor import Cursor, CursorFile, LiveRun
from dispatcher.sinks.follow import Touched, TrialFollower
from dispatcher.sinks.protocol import Sink, SinkKind, Surroundings
from trial_runtime.failpoints import failpoint

if TYPE_CHECKING:
    from dispatcher.sinks.callbacks.sink import CallbackSink

#: Points, and seconds, after which a sink is flushed and the cursor written, whatever is still to
#: come: what a tracker has taken so slowly is not sent again.
MOST_POINTS: Final = 100_000
LONGEST_S: Final = 5.0


def _kind_of(section: SinkConfig) -> SinkKind[Any]:
    if isinstance(section, CallbacksConfig):
        from dispatcher.sinks.callbacks import CALLBACKS  # with the keys of a whole file

        return CALLBACKS
    return kind_of_section(section)  # type: ignore[return-value]


class Feeding:
    """Feeds one sink. One thread.

    Args:
        folder: the experiment's.
        section: of the sink.
        on_secrets: gets the secrets that the section refers to, before anybody else does.
        on_kept: called when the cursor was written, also in the middle of a step.

    Raises:
        SinkBusy: another process feeds it.
        NotOurs: the experiment is somebody else's, and the sink would write into its folder.
        BackendError: the experiment cannot be read, or a secret is missing.
    """

    def __init__(
        self,
        folder: Path,
        section: SinkConfig,
        on_secrets: Callable[[list[str]], None] = lambda _: None,
        on_kept: Callable[[Feeding], None] = lambda _: None,
    ) -> None:
        self._section = section
        self._kind = _kind_of(section)
        secrets = resolved_secrets(section)
        on_secrets(list(secrets.values()))
        with contextlib.ExitStack() as stack:
            self._reader = stack.enter_context(ExperimentReader.open(folder))
            self._follower = TrialFollower(self._reader)
            self._experiment = self._follower.experiment()
            place = self._kind.cursor_folder(section, self._experiment)
            digest = hashlib.sha256(self.target.encode("utf-8", "replace")).hexdigest()[:8]
            # Two sinks to one place are one; one name for two places, in turn, are two.
            name = section.word if place is not None else f"{section.title}-{digest}"
            place = place or folder / SINKS_NAME
            if folder in place.parents:
                demand_ours(folder)  # nothing is written into somebody else's
            self._file = CursorFile(place, name)
            stack.callback(self._file.close)
            self._stack = stack.pop_all()
        self._secrets = secrets
        self._on_kept = on_kept
        self._sink: Sink | None = None
        self._cursor = Cursor("")
        self._begun: set[int] = set()  # by this sink
        self._runs: dict[int, Touched] = {}  # those that have not ended
        self._ranked: set[int] | None = None  # runs that have ended and were not dropped
        self._points = 0
        self._kept_at = time.monotonic()
        self._news = False  # the sink was given something since the cursor was written

    @property
    def target(self) -> str:
        """The place that the runs go to, in some words."""
        return self._kind.target(self._section, self._experiment)

    @property
    def trouble(self) -> str:
        """The failure that is not tried again; empty if there is none."""
        return "" if self._callbacks is None else self._callbacks.trouble

    @property
    def _callbacks(self) -> CallbackSink | None:
        """The sink, where it calls what the file names; known by its section, without an import."""
        ours = isinstance(self._section, CallbacksConfig)
        return cast("CallbackSink | None", self._sink) if ours else None

    @property
    def behind(self) -> int:
        """How many trials have ended and were not taken."""
        return self._follower.behind(self._cursor.closed_runs)

    @property
    def taken(self) -> int:
        """How many trials that have ended were taken."""
        return self._cursor.closed_runs

    def step(self) -> bool:
        """Give what is new, up to a bound; whether there is more at once.

        Raises:
            BackendError: the tracker or the store fails; this feeding is over.
            OSError: the cursor cannot be written; as above.
        """
        if self._sink is None and not self._open():
            return False  # no trial yet
        look = self._follower.look(self._cursor.after)
        if look.anew:
            self._begin_anew()
            return True
        touched = {each.run.trial: each for each in look.touched}
        if not look.more:  # what runs may have new points, which touch no trial
            touched = {**self._runs, **touched}
        for each in touched.values():
            self._take(each)
            late = time.monotonic() - self._kept_at > LONGEST_S
            if self._points > MOST_POINTS or (late and self._news):
                self._keep()
        self._cursor.advance(look.after)
        if self._news:
            self._keep()
        self._drop_the_rest()
        return look.more

    def _open(self) -> bool:
        began = self._follower.created_at()
        if began is None:
            return False
        self._experiment = self._follower.experiment()
        name = f"{self._experiment.id}@{began!r} > {self.target}"
        known = self._file.read()
        fresh = known is None or known.experiment != name
        self._cursor = Cursor(name) if known is None or fresh else known
        self._sink = self._made(None if fresh else self._cursor.memo)
        for each in self._follower.of(list(self._cursor.live)):
            self._runs[each.run.trial] = each
        for gone in set(self._cursor.live) - set(self._runs):
            del self._cursor.live[gone]
        return True

    def _made(self, memo: Any) -> Sink:
        closed = self._cursor.closed_runs
        around = Surroundings(self._experiment, memo, self._secrets, closed)
        return self._kind.sink_for(self._section, around)

    def _begin_anew(self) -> None:
        """Forget what was read: a power cut took it, or a backup took the store's place. Callbacks
        remember what they have called for."""
        memo = None
        if self._callbacks is not None:
            memo = self._callbacks.before_older_store(self._cursor.closed)
        if self._sink is not None:
            self._sink.close("")
        self._cursor = Cursor(self._cursor.experiment, memo=memo)
        if memo is None:
            self._file.forget()
        else:
            self._file.write(self._cursor)
        self._begun, self._runs, self._ranked = set(), {}, None
        self._sink = self._made(memo)

    def _take(self, touched: Touched) -> None:
        run, end = touched
        if self._cursor.is_closed(run.trial) or self._sink is None:
            return
        if end is None and (self._kind.whole or not run.started_at):
            return
        live = self._cursor.live.get(run.trial)
        goes_on = live is not None and live.attempt == run.attempt
        if goes_on and live is not None and run.trial not in self._begun:
            goes_on = live.place is not None and self._sink.begin(run, live.place)
        if live is None or not goes_on:
            live = self._begun_anew(touched)
        self._begun.add(run.trial)
        for points in self._follower.points(run, live.seq):
            self._sink.points(run, points)
            live.seq = points[-1].seq
            self._points += len(points)
            self._news = True
        if end is None:
            self._runs[run.trial] = touched
            return
        self._sink.end(run, end)
        self._news = True
        self._cursor.close(run.trial)
        self._begun.discard(run.trial)
        self._runs.pop(run.trial, None)
        if self._ranked is not None:
            self._ranked.add(run.trial)

    def _begun_anew(self, touched: Touched) -> LiveRun:
        assert self._sink is not None
        self._sink.begin(touched.run, None)
        self._news = True
        live = LiveRun(touched.run.attempt)
        self._cursor.live[touched.run.trial] = live
        return live

    def _keep(self) -> None:
        """Have all of it where it belongs, then write that down."""
        assert self._sink is not None
        flushed = self._sink.flush()
        failpoint("sink.flushed")
        self._cursor.place(flushed.places, flushed.memo)
        self._file.write(self._cursor)
        failpoint("sink.cursor.written")
        self._points, self._news = 0, False
        self._kept_at = time.monotonic()
        self._on_kept(self)

    def _drop_the_rest(self) -> None:
        """Leave the best runs only, if the file asks for so many."""
        most = self._section.keep
        if most is None or self._sink is None:
            return
        if self._ranked is None:
            self._ranked = {n for n in range(len(self._cursor.closed) * 8) if self._closed(n)}
        if len(self._ranked) > most:
            others = self._ranked - set(self._follower.best(most))
            self._sink.drop(sorted(others))
            self._ranked -= others

    def _closed(self, trial: int) -> bool:
        return self._cursor.is_closed(trial)

    def finish(self, status: str) -> None:
        """Close the sink, when all of it was taken.

        Args:
            status: the experiment's if it is over for good, or until it is resumed; else empty.
        """
        if self._sink is None and status and self._kind.ends:
            self._sink = self._made(None)
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.close(status)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            with contextlib.suppress(Exception):  # after an error, that one counts
                self.finish("")
        finally:
            self._stack.close()
