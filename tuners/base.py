"""The class that tuner authors derive from.

It keeps no state that a constructor would have to prepare: a large share of the tuners in the
wild never call ``super().__init__()``, and need not.
"""

from __future__ import annotations

import operator
import threading
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, SupportsIndex, TypeVar, overload

from tuners.errors import ParentFailed, WaitNotAllowed, WaitWithLock
from tuners.stores import StoreView

if TYPE_CHECKING:
    import numpy as np

WaitMode = Literal["all", "any"]
T = TypeVar("T")


class Gate(Protocol):
    """The tuner's only connection to its host, which installs it as ``_bequeath_gate``."""

    def wait(self, parents: tuple[int, ...], mode: WaitMode, timeout: float | None) -> list[int]:
        """Blocks until parents can bequeath; returns those that can.

        Args:
            parents: their ``parameter_id``s.
            mode: ``"all"`` waits for every one, ``"any"`` for the first that can.
            timeout: seconds; None: no bound.

        Raises:
            TunerError: see :meth:`Tuner.wait_for`.
        """

    def wait_for_version(
        self, store: str, number: int, by: int | None, timeout: float | None
    ) -> int:
        """Blocks until a shared store has a version; returns the number of one to pin.

        Args:
            store: its name.
            number: of the version; 0: any by trial ``by``.
            by: ``parameter_id`` of the trial; None: any trial.
            timeout: seconds; None: no bound.

        Raises:
            TunerError: see :meth:`Tuner.wait_for_version`.
        """

    def hold(self, store: str, numbers: tuple[int, ...]) -> None:
        """Keeps these versions of a shared store, and no others that were held before."""


class _Raise:
    """Marks a ``fallback`` that was not given, since None is a useful one."""

    def __repr__(self) -> str:
        return "<raise ParentFailed>"  # ``help`` shows it as the default


_RAISE = _Raise()


class _LazyLock:
    """Makes one RLock per tuner at first use; an author's own ``self.lock = …`` wins.

    Not ``functools.cached_property``: from Python 3.12 on two threads could get two locks.
    ``dict.setdefault`` with a string key is one step under the interpreter's lock.
    """

    def __get__(self, tuner: object, owner: type | None = None) -> threading.RLock:
        if tuner is None:
            return self  # type: ignore[return-value]  # looked up on the class, as for a property
        lock: threading.RLock = tuner.__dict__.setdefault("lock", threading.RLock())
        return lock


class Tuner:
    """Proposes parameters and learns from results; NNI's methods, plus ``wait_for`` and state.

    With ``multiThread: true`` (the default) ``generate_parameters`` overlaps with itself and with
    everything else, each request in a thread of its own; results are delivered one at a time, by
    a thread of their own. Guard what they share by ``with self.lock:``, and never wait inside.

    Attributes:
        lock: an RLock of this tuner, made at first use.
        seed: what :meth:`rng` starts from; the experiment's seed where the author sets none.

    Example:
        Every second trial starts from the weights of the one before it.

        >>> class Pairs(Tuner):
        ...     def generate_parameters(self, parameter_id, **kwargs):
        ...         parameters = {"lr": 0.1, "save_path": self.save_path(parameter_id)}
        ...         if parameter_id % 2:
        ...             self.wait_for(parameter_id - 1)
        ...             parameters["restore_path"] = self.save_path(parameter_id - 1)
        ...         return parameters
        ...
        ...     def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        ...         pass

        Without a dispatcher, a gate of ``tuners.testing`` stands in for the waiting:

        >>> from tuners.testing import with_gate
        >>> with_gate(Pairs()).generate_parameters(1)["restore_path"]
        'trials/0'
    """

    _bequeath_gate: Gate | None = None
    _bequeath_stores: Mapping[str, int] | None = None  # newest versions; the host keeps it current
    seed: int | None = 0
    lock = _LazyLock()

    # ---- what authors override (the names and arguments of NNI) ------------------------------

    def update_search_space(self, search_space: Any) -> None:
        """Takes the search space as decoded JSON: once at the start, and when a user changes it."""

    def handles(self, search_space: Any) -> str:
        """Says in one sentence why this tuner cannot search a space; empty if it can.

        Asked of a fresh tuner before anything starts, and by ``bequeath validate`` of those that
        come with bequeath.
        """
        return ""

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        """Returns the parameters of one trial, JSON-serialisable, usually a dict. May block.

        Two keys mean something (``weightKeys`` renames them): ``save_path``, where the trial
        publishes its weights, and ``restore_path``, the save path of the trial it starts from.

        Args:
            parameter_id: unique in the experiment, counting from 0 in order of requests.
            **kwargs: for what NNI may add; nothing today.

        Raises:
            NoMoreTrialError: nothing for now; asked again, under the same id, after the next
                result.
        """
        raise NotImplementedError(f"{type(self).__name__} must define generate_parameters")

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """Takes a final result: a number, or a mapping whose ``default`` is one.

        Called once for each trial that has one, before its ``trial_end``, and before any child
        that waits for it goes on. One thread calls it, for one trial at a time.

        Args:
            parameter_id: the trial.
            parameters: what ``generate_parameters`` returned for it, as JSON gives it back.
            value: what the trial reported.
            **kwargs: ``customized`` (true for a trial that a user proposed) and
                ``trial_job_id``, for tuners that take them.
        """
        raise NotImplementedError(f"{type(self).__name__} must define receive_trial_result")

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Called once when the last attempt of a trial is over; then its waiters go on.

        Args:
            parameter_id: the trial. A request that ended without parameters is none.
            success: false if it failed, was killed, lost or timed out, even after a result.
            **kwargs: for what NNI may add; nothing today.
        """

    def import_data(self, data: Sequence[dict[str, Any]]) -> str | None:
        """Takes results of another experiment: ``[{"parameter": …, "value": …}, …]``.

        Called when a user imports some (``bequeath experiment import``), once, in one order with
        results; a tuner that is rebuilt gets them again.

        Returns:
            A sentence for that user, such as that they are of no use to this tuner; None: nothing.
        """
        return f"{type(self).__name__} does not learn from them: what was imported is ignored"

    def _on_exit(self) -> None:
        """Called when the experiment is over or stops, as far as there is time for it."""

    def _on_error(self) -> None:
        """Part of NNI's interface; bequeath does not call it."""

    def state(self) -> Any:
        """Returns what ``restore`` needs, JSON-serialisable; None: rebuild me by replay.

        Called while no result is being delivered and every request thread is blocked or gone.
        """
        return None

    def restore(self, state: Any) -> None:
        """Takes what ``state`` returned, in a fresh tuner, before any request or later result."""
        raise NotImplementedError(f"{type(self).__name__} defines state but not restore")

    def restore_proposal(self, parameter_id: int, parameters: Any) -> None:
        """Takes, after ``restore``, parameters that were returned since that ``state``.

        Called in one order with the results since. For tuners that keep count of their proposals;
        most see all that they need in the parameters that come with a result.

        Args:
            parameter_id: the trial, which may run still or have ended.
            parameters: what ``generate_parameters`` returned for it, as JSON gives it back.
        """

    # ---- what authors call -------------------------------------------------------------------

    @overload
    def wait_for(
        self,
        parent: SupportsIndex,
        *more: SupportsIndex,
        mode: WaitMode = "all",
        timeout: float | None = None,
    ) -> list[int]: ...

    @overload
    def wait_for(
        self,
        parent: SupportsIndex,
        *more: SupportsIndex,
        mode: WaitMode = "all",
        timeout: float | None = None,
        fallback: T,
    ) -> list[int] | T: ...

    def wait_for(
        self,
        parent: SupportsIndex,
        *more: SupportsIndex,
        mode: WaitMode = "all",
        timeout: float | None = None,
        fallback: Any = _RAISE,
    ) -> Any:
        """Blocks until trials have ended and their weights may be read. Holds no slot meanwhile.

        When it returns, each named trial's weights are committed and its ``receive_trial_result``
        and ``trial_end`` have returned.

        Args:
            parent: ``parameter_id`` of the trial to wait for.
            more: further ones.
            mode: ``"all"`` waits for every one, ``"any"`` for the first that can bequeath.
            timeout: seconds; None waits as long as it takes.
            fallback: returned instead of raising ParentFailed, such as None to start afresh.

        Returns:
            The ids that can bequeath, in the order they were named (``"any"``: those so far).

        Raises:
            ParentFailed: a parent (``"any"``: every parent) cannot bequeath.
            UnknownParent: no such trial.
            WaitTimeout: the timeout passed.
            WaitCancelled: the experiment is stopping.
            WaitNotAllowed: outside a request thread, or with ``multiThread: false``.
            WaitWithLock: this thread holds ``self.lock``.
            SelfWait, CycleRefused: the wait could never end.
        """
        parents = tuple(dict.fromkeys(_parameter_id(one) for one in (parent, *more)))
        if mode not in ("all", "any"):
            raise ValueError(f"mode is 'all' or 'any', not {mode!r}")
        gate = self._gate_to_wait_at(parents, timeout)
        try:
            return gate.wait(parents, mode, timeout)
        except ParentFailed:
            if isinstance(fallback, _Raise):
                raise
            return fallback

    def rng(self, parameter_id: int, *salt: int | str) -> np.random.Generator:
        """Returns a generator seeded by (``self.seed``, parameter_id, salt).

        Drawing from it after the last wait makes a request give the same answer when it is asked
        again, whatever other requests drew meanwhile.

        >>> Tuner().rng(7).random() == Tuner().rng(7).random()
        True
        """
        import numpy as np

        numbers = [zlib.crc32(word.encode()) if isinstance(word, str) else word for word in salt]
        return np.random.default_rng([self.seed or 0, parameter_id, *numbers])

    def shared_store(self, name: str) -> StoreView:
        """Returns a shared store of weights, to pin one of its versions for a trial.

        Trials publish versions while they run (:func:`trial_runtime.shared_store`); each stays as
        it is. A request that waits should look for the newest one after its waits.

        Args:
            name: letters, digits, ``-._``; the first trial that publishes under it makes it.

        >>> Tuner().shared_store("omega").latest()
        0
        """
        newest = self._bequeath_stores
        return StoreView(name, {} if newest is None else newest, self._hold_versions)

    def wait_for_version(
        self,
        store: str,
        number: SupportsIndex | None = None,
        *,
        by: SupportsIndex | None = None,
        timeout: float | None = None,
        fallback: Any = _RAISE,
    ) -> Any:
        """Blocks until a shared store has a version. Holds no slot meanwhile.

        Name one of the two: ``self.wait_for_version("omega", 5)`` waits until there are five
        versions, ``self.wait_for_version("omega", by=3)`` until trial 3 has published one, which it
        may do while it runs. Ten thousand requests may wait for one version.

        Args:
            store: its name.
            number: of the version, from 1.
            by: ``parameter_id`` of the trial that is to publish it.
            timeout: seconds; None waits as long as it takes.
            fallback: returned instead of raising ParentFailed.

        Returns:
            The number of a version to pin: the newest there is by then, or the newest of that
            trial's own.

        Raises:
            ParentFailed: that trial has ended and published none.
            UnknownParent: no such trial.
            VersionTimeout: the timeout passed.
            WaitCancelled: the experiment is stopping.
            WaitNotAllowed: outside a request thread, or with ``multiThread: false``.
            WaitWithLock: this thread holds ``self.lock``.
            SelfWait, CycleRefused: the wait could never end.
        """
        if (number is None) == (by is None):
            raise ValueError("wait_for_version takes either a number or by=, a trial")
        wanted = 0 if number is None else _parameter_id(number)
        if number is not None and wanted < 1:
            raise ValueError(f"versions count from 1, not from {wanted}")
        publisher = None if by is None else _parameter_id(by)
        gate = self._gate_to_wait_at(() if publisher is None else (publisher,), timeout)
        try:
            return gate.wait_for_version(store, wanted, publisher, timeout)
        except ParentFailed:
            if isinstance(fallback, _Raise):
                raise
            return fallback

    def _gate_to_wait_at(self, parents: tuple[int, ...], timeout: float | None) -> Gate:
        """The gate, if this thread may wait there."""
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout is a number of seconds from 0 up, or None, not {timeout!r}")
        if _held_by_this_thread(self.__dict__.get("lock")):
            raise WaitWithLock(parents)
        if self._bequeath_gate is None:
            raise WaitNotAllowed(
                "this tuner is not run by the dispatcher",
                "In a test, give it a gate: tuners.testing.with_gate(tuner).",
            )
        return self._bequeath_gate

    def _hold_versions(self, store: str, numbers: tuple[int, ...]) -> None:
        hold = getattr(self._bequeath_gate, "hold", None)  # stand-ins in tests may have none
        if hold is not None:
            hold(store, numbers)

    def save_path(self, parameter_id: int) -> str:
        """Returns the path of the weights of trial ``parameter_id``, relative to the weights root.

        For the parameters: as its own ``save_path``, or as the ``restore_path`` of its children.
        Any other relative path will do as well, if no two trials have the same.
        """
        return f"trials/{parameter_id}"


def _parameter_id(value: SupportsIndex) -> int:
    """Accepts numpy integers too; refuses floats, strings and bools, which are slips."""
    if isinstance(value, bool):
        raise TypeError(f"wait_for takes parameter_ids, not {value!r}")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"wait_for takes parameter_ids (integers), not {value!r}; it waits for trials, "
            "not for paths or parameters"
        ) from None


def _held_by_this_thread(lock: object) -> bool:
    """Whether this thread holds the lock, as an RLock knows; the tuner host watches other locks."""
    is_owned = getattr(lock, "_is_owned", None)
    return bool(is_owned()) if callable(is_owned) and not isinstance(lock, type) else False
