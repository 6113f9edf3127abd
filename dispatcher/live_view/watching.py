"""The live view of an experiment, beside other work or until the user ends it."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from dispatcher.live_view.bar import CellLine, bar, is_cell, last_line
from dispatcher.safe_text import keep_lines
from dispatcher.terminal import formatting
from dispatcher.terminal.console import console, emit, is_terminal

if TYPE_CHECKING:
    from dispatcher.live_view.scene import Observer, Scene

#: Seconds between two scenes: more cannot be read, and each costs the engine a reply.
LIVE_EVERY_S = 0.5
PLAIN_EVERY_S = 1.0

#: Seconds between two lines without a new best.
EVERY_S = 10.0


class Watching:
    """Shows scenes on stderr: a live picture on a terminal, a bar in a notebook, else plain lines.

    Args:
        observer: reads the experiment; closed at the end.
        until: called after each scene; true ends :meth:`show`.
        every_s: seconds between two scenes; None: as suits the terminal or pipe.
    """

    def __init__(
        self,
        observer: Observer,
        until: Callable[[Scene], bool] | None = None,
        *,
        every_s: float | None = None,
    ) -> None:
        self._every_s = every_s
        self._observer = observer
        self._until = until or (lambda _: False)
        self._messages: deque[str] = deque()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def tell(self, text: str) -> None:
        """Show a message that stays. From any thread, and from signal handlers."""
        self._messages.append(text)

    def show(self) -> None:
        """Show scenes until ``until`` is true. Blocks; :meth:`close` in another thread ends it."""
        try:
            if is_terminal(sys.stderr):
                self._show_live()
            elif is_cell(sys.stderr):
                self._show_bar()
            else:
                self._show_lines()
        finally:
            self._observer.close()

    def start(self) -> None:
        """Run :meth:`show` in a thread of its own."""
        self._thread = threading.Thread(target=self.show, name="display", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the view; all messages are shown when this returns."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _show_live(self) -> None:
        from rich.live import Live

        from dispatcher.live_view.picture import picture

        screen = console(stderr=True)
        with Live(console=screen, auto_refresh=False, transient=True) as live:
            while True:
                over = self._over.is_set()
                while self._messages:
                    text = keep_lines(self._messages.popleft())
                    live.console.print(text, style="yellow", soft_wrap=True)
                if over:
                    return
                scene = self._observer.look()
                live.update(picture(scene, *screen.size), refresh=True)
                if self._until(scene):
                    return
                self._over.wait(self._every_s or LIVE_EVERY_S)

    def _show_bar(self) -> None:
        line = CellLine()
        while True:
            over = self._over.is_set()
            while self._messages:
                line.leave()
                for one in self._messages.popleft().splitlines():
                    emit(one, err=True)
            scene = self._observer.look()
            if scene.snapshot is not None:
                share = bar(scene.snapshot.ended, scene.snapshot.max_trials)
                line.show(f"{share}{summary(scene)}")
            elif over and (ended := self._observer.summary()) is not None:
                line.show(last_line(ended))
            if over or self._until(scene):
                line.leave()
                return
            self._over.wait(self._every_s or LIVE_EVERY_S)

    def _show_lines(self) -> None:
        progress = PlainProgress()
        while True:
            over = self._over.is_set()
            while self._messages:
                text = self._messages.popleft()
                for line in text.splitlines():
                    emit(f"{clock()}  {line}", err=True)
            if over:
                return
            scene = self._observer.look()
            for line in progress.lines(scene, time.monotonic()):
                emit(line, err=True)
            if self._until(scene):
                return
            self._over.wait(self._every_s or PLAIN_EVERY_S)


class PlainProgress:
    """Turns scenes into lines; most scenes give none."""

    def __init__(self, every_s: float = EVERY_S) -> None:
        self._every_s = every_s
        self._last_at: float | None = None
        self._best: float | None = None
        self._phase = ""

    def lines(self, scene: Scene, now: float) -> list[str]:
        """Return the lines to print at ``now`` (monotonic seconds)."""
        if scene.snapshot is None:
            return []
        due = self._last_at is None or now - self._last_at >= self._every_s
        best = scene.best.value if scene.best is not None else None
        changed = best != self._best or scene.snapshot.phase != self._phase
        # New bests may come every few milliseconds: one second between lines at least.
        if not due and not (changed and now - (self._last_at or 0.0) >= 1.0):
            return []
        self._last_at, self._best, self._phase = now, best, scene.snapshot.phase
        return [f"{clock()}  {summary(scene)}"]


def summary(scene: Scene) -> str:
    """Return one line: progress, running trials, the best, the rate, the time left."""
    snapshot = scene.snapshot
    assert snapshot is not None
    total, counts = snapshot.max_trials, snapshot.counts
    done = (
        f"{snapshot.ended}/{total} trials" if total else formatting.count(snapshot.ended, "trial")
    )
    parts = [done, f"{counts.running} running"]
    if counts.waiting:
        parts.append(f"{counts.waiting} waiting")
    if scene.best is not None:
        parts.append(f"best {formatting.number(scene.best.value)} (trial {scene.best.id})")
    if scene.per_minute is not None:
        parts.append(f"{scene.per_minute:.3g}/min")
    if scene.left_s is not None:
        parts.append(f"{formatting.duration(scene.left_s)} left")
    if snapshot.phase != "running":
        parts.append(snapshot.phase)
    return "  ".join(parts)


def clock() -> str:
    """Return the time of day, UTC, for the beginning of a line."""
    return time.strftime("%H:%M:%S", time.gmtime())
