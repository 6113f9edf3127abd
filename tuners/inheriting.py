"""The base of tuners whose trials go on from the weights of others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from tuners import space as spaces
from tuners.base import Tuner
from tuners.errors import NoMoreTrialError, UnknownParent, WaitNotAllowed

#: Parameters that such tuners add.
PATHS = ("save_path", "restore_path")


def without(parameters: Any, keys: Collection[str]) -> dict[str, Any]:
    """Returns parameters without those that a tuner has added; none of what is no mapping."""
    known = parameters if isinstance(parameters, Mapping) else {}
    return {key: known[key] for key in known if key not in keys}


class InheritingTuner(Tuner):
    """Draws from a search space, and asks how a trial ended before another one starts from it.

    Like its base it keeps no state that a constructor would have to prepare.
    """

    #: Why a request cannot go on, where waiting is not allowed; ``{trial}`` is a number.
    _not_ended: ClassVar[str] = "trial {trial} has not ended"

    #: Parameters that the tuner adds, and that a search space may not have therefore.
    _own_keys: ClassVar[tuple[str, ...]] = PATHS

    _space = spaces.Space(())

    def handles(self, search_space: Any) -> str:
        """Whether a parameter of the space is called like one that the tuner adds."""
        for name, _ in spaces.parse(search_space).dimensions:
            if name in self._own_keys:
                return f"the parameter {name!r} is one that the tuner itself adds: rename yours."
        return ""

    def update_search_space(self, search_space: Any) -> None:
        """Takes the space for what is drawn from now on; raises SpaceError if it is unreadable."""
        space = spaces.parse(search_space)
        with self.lock:
            self._space = space

    def _has_ended_well(self, parameter_id: int) -> bool:
        """Waits for a trial to end; False when it cannot bequeath, or never was.

        Called without the lock: the end that is waited for needs it.

        Raises:
            NoMoreTrialError: it has not ended, and waiting is not allowed.
        """
        try:
            return self.wait_for(parameter_id, fallback=None) is not None
        except UnknownParent:
            return False
        except WaitNotAllowed as refused:
            with self.lock:
                ended = self._reported_end(parameter_id)
            if ended is None:
                reason = self._not_ended.format(trial=parameter_id)
                raise NoMoreTrialError(f"{reason}, and {refused.reason}") from refused
            return ended

    def _reported_end(self, parameter_id: int) -> bool | None:
        """Whether a trial ended well, as ``trial_end`` reported it; None: nothing yet.

        A request that may not wait has nothing else to go by. Called with the lock held. Here: for
        tuners that keep no such record.
        """
        return None
