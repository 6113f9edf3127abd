"""Gates that stand in for the dispatcher's: open, refusing, and opened by the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from tuners.base import Gate, Tuner, WaitMode
from tuners.errors import (
    ParentFailed,
    VersionTimeout,
    WaitCancelled,
    WaitNotAllowed,
    WaitTimeout,
)

#: Seconds after which a test that stands still is over: a bound on a hang, not a measure of speed.
PATIENCE_S = 60.0

AnyTuner = TypeVar("AnyTuner", bound=Tuner)
T = TypeVar("T")


def with_gate(tuner: AnyTuner, gate: Gate | None = None) -> AnyTuner:
    """Give a tuner a gate, as its host does in an experiment, and return the tuner.

    >>> with_gate(Tuner()).wait_for(0, 1)
    [0, 1]

    Args:
        tuner: one that derives from :class:`tuners.Tuner`.
        gate: what its waits go to; an :class:`OpenGate` of its own if none is named.
    """
    gate = OpenGate() if gate is None else gate
    tuner._bequeath_gate = gate
    if isinstance(gate, OpenGate):
        tuner._bequeath_stores = gate.versions
    return tuner


class OpenGate:
    """Stands in for the dispatcher: every trial that is waited for has ended.

    >>> gate = OpenGate(failed={1: "exit code 1"})
    >>> with_gate(Tuner(), gate).wait_for(0, 1, mode="any")
    [0]
    >>> gate.waited
    [(0, 1)]

    Args:
        failed: trials that cannot bequeath, with a reason for each if it is a mapping.
        versions: the newest version of each shared store; whoever made it may add to it.

    Attributes:
        failed: the same, as a mapping; it may be changed at any time.
        versions: the same; a wait for a later version makes it.
        waited: the parents of each ``wait_for`` so far, in the order of the waits.
        waited_for_versions: each ``wait_for_version`` so far: store, number (0: any), trial.
        held: the versions of each shared store that the tuner holds.
    """

    def __init__(
        self,
        failed: Mapping[int, str] | Collection[int] = (),
        versions: dict[str, int] | None = None,
    ) -> None:
        reasons = failed if isinstance(failed, Mapping) else dict.fromkeys(failed, "exit code 1")
        self.failed: dict[int, str] = dict(reasons)
        self.versions = {} if versions is None else versions
        self.waited: list[tuple[int, ...]] = []
        self.waited_for_versions: list[tuple[str, int, int | None]] = []
        self.held: dict[str, tuple[int, ...]] = {}

    def wait(self, parents: tuple[int, ...], mode: WaitMode, timeout: float | None) -> list[int]:
        """Return those that can bequeath. Does not block.

        Args:
            parents: their ``parameter_id``s.
            mode: ``"all"`` or ``"any"``.
            timeout: seconds; of no account, as there is nothing to wait for.

        Raises:
            ParentFailed: a parent (``"any"``: every parent) is in ``failed``.
        """
        self.waited.append(parents)
        self._refuse()
        return self._passed(parents, mode) or []

    def wait_for_version(
        self, store: str, number: int, by: int | None, timeout: float | None
    ) -> int:
        """Return the newest version of a shared store. Does not block.

        Args:
            store: its name.
            number: of the version; 0: any by trial ``by``.
            by: ``parameter_id`` of the trial; None: any trial.
            timeout: seconds; of no account, as there is nothing to wait for.

        Raises:
            ParentFailed: ``by`` is in ``failed``.
        """
        self.waited_for_versions.append((store, number, by))
        self._refuse()
        if by in self.failed:
            raise ParentFailed(by, "published no version")
        self.versions[store] = max(number, self.versions.get(store, 0), 1)
        return self.versions[store]

    def hold(self, store: str, numbers: tuple[int, ...]) -> None:
        """Note which versions of a shared store the tuner holds."""
        self.held[store] = numbers

    def _refuse(self) -> None:
        """Raise an error if no wait is allowed."""

    def _has_ended(self, trial: int) -> bool:
        return True

    def _passed(self, parents: tuple[int, ...], mode: WaitMode) -> list[int] | None:
        """The parents that can bequeath; None: it is too early to say."""
        failed = [parent for parent in parents if parent in self.failed]
        if failed and (mode == "all" or len(failed) == len(parents)):
            raise ParentFailed(failed[0], self.failed[failed[0]])
        passed = [one for one in parents if one not in self.failed and self._has_ended(one)]
        enough = 1 if mode == "any" else len(parents)
        return passed if len(passed) >= enough else None


class RefusingGate(OpenGate):
    """Refuses every wait, as the dispatcher does with ``multiThread: false``."""

    def _refuse(self) -> None:
        raise WaitNotAllowed("multiThread is false")


class ScriptedGate(OpenGate):
    """A gate whose trials end when the test says so; until then waits block, as in an experiment.

    A request that is to block runs in a thread of the test's own; :meth:`until_blocked` returns
    once it does, so that no test needs to sleep. :class:`Search` brings such threads along.

    Args:
        patience_s: seconds after which a wait that nobody ends, or a thread that never comes to
            wait, fails the test.

    Attributes:
        ended: the trials that have ended well.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        super().__init__()
        self.patience_s = patience_s
        self.ended: set[int] = set()
        self._publishers: set[tuple[str, int]] = set()
        self._waits: dict[threading.Thread, tuple[tuple[int, ...], Callable[[], bool]]] = {}
        self._is_cancelled = False
        self._changed = threading.Condition()

    def open(self, *trials: int) -> None:
        """Let trials have ended well: whoever waits for them goes on."""
        with self._changed:
            self.ended.update(trials)
            self._changed.notify_all()

    def fail(self, trial: int, reason: str = "exit code 1") -> None:
        """Let a trial have ended with nothing to bequeath."""
        with self._changed:
            self.failed[trial] = reason
            self._changed.notify_all()

    def publish(self, store: str, by: int) -> int:
        """Let a trial publish the next version of a shared store; return its number."""
        with self._changed:
            self.versions[store] = self.versions.get(store, 0) + 1
            self._publishers.add((store, by))
            self._changed.notify_all()
            return self.versions[store]

    def cancel(self) -> None:
        """Let all waits, and each later one, raise ``WaitCancelled``: the experiment stops."""
        with self._changed:
            self._is_cancelled = True
            self._changed.notify_all()

    def until_blocked(self, trial: int, threads: int = 1) -> None:
        """Return once so many threads wait for a trial.

        Raises:
            AssertionError: they never did, within the patience of the gate.
        """

        def are_there() -> bool:
            waiting = self.blocked().values()
            return sum(trial in parents for parents in waiting) >= threads

        with self._changed:
            if not self._changed.wait_for(are_there, self.patience_s):
                raise AssertionError(
                    f"{threads} should wait for trial {trial} and did not within "
                    f"{self.patience_s:g} s"
                )

    def blocked(self) -> dict[threading.Thread, tuple[int, ...]]:
        """The threads that wait for something that has not happened, each with the parents."""
        with self._changed:
            waits = self._waits.items()
            return {thread: parents for thread, (parents, is_over) in waits if not is_over()}

    def wait(self, parents: tuple[int, ...], mode: WaitMode, timeout: float | None) -> list[int]:
        """Block until enough of these trials have ended.

        Args:
            parents: their ``parameter_id``s.
            mode: ``"all"`` or ``"any"``.
            timeout: seconds; None: no bound but the patience of the gate.

        Raises:
            TunerError: see :meth:`tuners.Tuner.wait_for`.
            AssertionError: nobody ended them within the patience of the gate.
        """
        self.waited.append(parents)
        passed = self._block(lambda: self._passed(parents, mode), parents, timeout)
        if passed is None:
            raise WaitTimeout(parents, timeout or 0.0)
        return passed

    def wait_for_version(
        self, store: str, number: int, by: int | None, timeout: float | None
    ) -> int:
        """Block until that version is published.

        Args:
            store: its name.
            number: of the version; 0: any by trial ``by``.
            by: ``parameter_id`` of the trial; None: any trial.
            timeout: seconds; None: no bound but the patience of the gate.

        Raises:
            TunerError: see :meth:`tuners.Tuner.wait_for_version`.
            AssertionError: nobody published it within the patience of the gate.
        """

        def newest() -> int | None:
            version = self.versions.get(store, 0)
            if version >= number if by is None else (store, by) in self._publishers:
                return version
            if by in self.failed or by in self.ended:
                raise ParentFailed(by, "published no version")
            return None

        self.waited_for_versions.append((store, number, by))
        version = self._block(newest, () if by is None else (by,), timeout)
        if version is None:
            raise VersionTimeout(store, number, by, timeout or 0.0)
        return version

    def _has_ended(self, trial: int) -> bool:
        return trial in self.ended

    def _goes_on(self, me: threading.Thread, is_over: Callable[[], bool]) -> bool:
        """Whether a thread that waits goes on now."""
        return is_over()

    def _block(
        self, answer: Callable[[], T | None], parents: tuple[int, ...], timeout: float | None
    ) -> T | None:
        """The answer, as soon as there is one; None once the timeout is over."""

        def is_over() -> bool:
            try:
                return self._is_cancelled or answer() is not None
            except ParentFailed:
                return True

        limit = self.patience_s if timeout is None else min(timeout, self.patience_s)
        me = threading.current_thread()
        with self._changed:
            self._waits[me] = parents, is_over
            self._changed.notify_all()
            try:
                self._changed.wait_for(lambda: self._goes_on(me, is_over), limit)
            finally:
                del self._waits[me]
            if self._is_cancelled:
                raise WaitCancelled
            answered = answer()
        if answered is None and timeout != limit:
            awaited = f"trials {parents}" if parents else "a version"
            raise AssertionError(f"nobody ended the wait for {awaited} within {limit:g} s")
        return answered
