"""Functions of the caller's that are called in its own process, while it waits for a search."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from dispatcher.errors import BequeathError
from dispatcher.queries import ExperimentReader, OptimizeMode, TrialSummary, changes

Hears = Callable[[TrialSummary], object] | None
"""A function that is called with a trial that is over; None for none."""

#: Seconds between looks at the store.
_EVERY_S: Final = 0.5

_MOST: Final = 400


class Hearing:
    """Calls functions for trials that end from now on, in a thread of its own, one after another.

    What a function raises is a Python warning; the search goes on. Those that are behind when the
    search is over are called before :meth:`close` returns.

    Args:
        folder: the experiment's; None if it has none yet.
        on_trial_end: for each trial that has run and is over.
        on_new_best: for each of these that is better than all before it, after ``on_trial_end``.
    """

    def __init__(self, folder: Path | None, on_trial_end: Hears, on_new_best: Hears) -> None:
        self._calls = {"on_trial_end": on_trial_end, "on_new_best": on_new_best}
        self._wanted = on_trial_end is not None or on_new_best is not None
        self._folder = folder
        self._cursor = ""
        self._seen: set[int] = set()
        self._best: float | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        if self._wanted and folder is not None:
            self._look(quiet=True)

    def follow(self, folder: Path) -> Self:
        """Begin to listen to an experiment that has begun."""
        self._folder = folder
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
            except BequeathError as error:
                warnings.warn(f"on_trial_end, on_new_best: {error}", stacklevel=1)

    def _look(self, *, quiet: bool) -> None:
        """Read what is new, and call for it unless it was there before."""
        assert self._folder is not None
        with ExperimentReader.open(self._folder) as reader:
            more = True
            while more:
                page = changes(reader, self._cursor, most=_MOST, metrics=False)
                for each in page.trials:
                    self._take(each.trial, reader.mode is OptimizeMode.MAXIMIZE, quiet)
                more = page.more
                self._cursor = page.cursor if page.exact or page.more else ""

    def _take(self, trial: TrialSummary, maximize: bool, quiet: bool) -> None:
        if not trial.over or not trial.attempt or trial.id in self._seen:
            return
        self._seen.add(trial.id)
        value, best = trial.value, self._best
        better = value is not None and (
            best is None or (value > best if maximize else value < best)
        )
        if better:
            self._best = value
        if not quiet:
            self._call("on_trial_end", trial)
            if better:
                self._call("on_new_best", trial)

    def _call(self, name: str, trial: TrialSummary) -> None:
        function = self._calls[name]
        if function is None:
            return
        try:
            function(trial)
        except Exception as error:  # noqa: BLE001 - the caller's code, which harms itself only
            text = f"{name} of trial {trial.id} raised {type(error).__name__}: {error}"
            warnings.warn(text, stacklevel=1)
