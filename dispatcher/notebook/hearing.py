"""Functions of the caller's that are called in its own process, while it waits for a search."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from dispatcher.errors import DispatcherError
from dispatcher.notebook.arguments import function
from dispatcher.notebook.following import EventFollower
from dispatcher.queries import TrialSummary

Hears = Callable[[TrialSummary], object] | None
"""A function that is called with a trial that is over; None for none."""

#: Seconds between looks at the store.
_EVERY_S: Final = 0.1


class Hearing:
    """Calls functions for trials that end from now on, in a thread of its own, one after another.

    What a function raises is a Python warning; the search goes on. Those that are behind when the
    search is over are called before the ``with`` block ends.

    Args:
        folder: the experiment's; None if it has none yet.
        on_trial_end: for each trial that has run and is over.
        on_new_best: for each of these that is better than all before it, after ``on_trial_end``.
    """

    def __init__(self, folder: Path | None, on_trial_end: Hears, on_new_best: Hears) -> None:
        self._calls: dict[str, Hears] = {
            "trial_end": function("on_trial_end", on_trial_end),
            "new_best": function("on_new_best", on_new_best),
        }
        self._wanted = on_trial_end is not None or on_new_best is not None
        self._follower = None if folder is None else EventFollower(folder, metrics=False)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        if self._wanted and folder is not None:
            self._look(quiet=True)

    def follow(self, folder: Path) -> Self:
        """Begin to listen to an experiment that has begun."""
        if self._follower is None:
            self._follower = EventFollower(folder, metrics=False)
        if self._wanted:
            self._thread = threading.Thread(target=self._run, name="hearing", daemon=True)
            self._thread.start()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        over = False
        while not over:
            over = self._over.wait(_EVERY_S)  # before the look: what came before it is in the look
            try:
                self._look(quiet=False)
            except DispatcherError as error:
                warnings.warn(f"on_trial_end, on_new_best: {error}", stacklevel=1)

    def _look(self, *, quiet: bool) -> None:
        """Read what is new, and call for it unless it was there before."""
        assert self._follower is not None
        more = True
        while more:
            events, more = self._follower.page()
            for event in events:
                if not quiet and event.trial is not None and event.kind in self._calls:
                    self._call(event.kind, event.trial)

    def _call(self, kind: str, trial: TrialSummary) -> None:
        call = self._calls[kind]
        if call is None:
            return
        try:
            call(trial)
        except Exception as error:  # noqa: BLE001 - the caller's code, which harms itself only
            text = f"on_{kind} of trial {trial.id} raised {type(error).__name__}: {error}"
            warnings.warn(text, stacklevel=1)
