"""The decision which trials' weights may go. Pure: trials, pins and a policy in, a decision out.

Files are another matter (:mod:`trial_runtime.weights.usage`): the weights of a trial that
goes may hold tensors that kept trials refer to, and those files stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from dispatcher.errors import UserError


class Keep(StrEnum):
    """The policies of an experiment file's ``retention``."""

    ALL = "all"
    BEST = "best"
    ANCESTORS_OF_LIVE = "ancestors-of-live"
    LAST_GENERATIONS = "last-generations"


@dataclass(frozen=True, slots=True)
class Policy:
    """The weights kept beyond those that must be; ``count``: how many of the best trials or of the
    last generations."""

    keep: Keep = Keep.ALL
    count: int = 0

    @classmethod
    def of(cls, keep: str, count: int | None = None) -> Policy:
        """Make it from the values of an experiment file. Raises ``UserError``."""
        if keep not in list(Keep):
            raise UserError(
                f"there is no retention policy {keep!r}", hint=f"one of {', '.join(Keep)}"
            )
        policy = cls(Keep(keep), count or 0)
        if policy.keep in (Keep.BEST, Keep.LAST_GENERATIONS) and policy.count < 1:
            raise UserError(f"retention {keep!r} needs a count of at least 1")
        return policy


class Need(StrEnum):
    """Reasons for which a trial's weights stay: the first that holds, in this order."""

    LIVE = "the trial has not ended"
    CHILD = "a live child starts from them"
    AWAITED = "an open request waits for the trial"
    PINNED = "pinned"
    BEST = "the best trial so far"
    POLICY = "the policy keeps them"


@dataclass(frozen=True, slots=True)
class TrialView:
    """A trial as the decision sees it. ``request`` is an open request, which has no parameters
    yet; ``value`` is the result delivered to the tuner."""

    id: int
    live: bool
    parent: int | None = None
    save_path: str | None = None
    value: float | None = None
    committed: bool = True
    request: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Trials whose weights stay, each with its need; trials whose weights may go, by id."""

    kept: Mapping[int, Need]
    dropped: tuple[int, ...]


def decide(
    trials: Iterable[TrialView],
    policy: Policy,
    *,
    maximize: bool = True,
    pins: Iterable[int] = (),
    awaited: Iterable[int] = (),
) -> Decision:
    """Decide on all trials that have a save path.

    Args:
        trials: all of the experiment, open requests included, in any order.
        policy: chooses weights to keep beyond those that must be.
        maximize: whether larger values are better.
        pins: trials whose weights stay whatever the policy says.
        awaited: trials that open requests have waited for.
    """
    known = {trial.id: trial for trial in trials}
    kept: dict[int, Need] = {}

    def keep(ids: Iterable[int], need: Need) -> None:
        for trial_id in ids:
            trial = known.get(trial_id)
            if trial is not None and trial.save_path is not None:
                kept.setdefault(trial_id, need)

    live = [trial for trial in known.values() if trial.live]
    keep((trial.id for trial in live), Need.LIVE)
    keep((trial.parent for trial in live if trial.parent is not None), Need.CHILD)
    keep(awaited, Need.AWAITED)
    keep(pins, Need.PINNED)
    ranked = _best_first(known.values(), maximize)
    keep(ranked[:1], Need.BEST)
    match policy.keep:
        case Keep.ALL:
            keep(known, Need.POLICY)
        case Keep.BEST:
            keep(ranked[: policy.count], Need.POLICY)
        case Keep.ANCESTORS_OF_LIVE:
            starts = [*(trial.id for trial in live), *awaited]
            keep(_with_ancestors(known, starts), Need.POLICY)
        case Keep.LAST_GENERATIONS:
            keep(_last_generations(known, policy.count), Need.POLICY)
    dropped = sorted(
        trial.id for trial in known.values() if trial.save_path is not None and trial.id not in kept
    )
    return Decision(kept, tuple(dropped))


def _best_first(trials: Iterable[TrialView], maximize: bool) -> list[int]:
    """Order trials with weights and a value; of equals the first."""
    valued = [
        (-trial.value if maximize else trial.value, trial.id)
        for trial in trials
        if trial.value is not None and trial.committed and trial.save_path is not None
    ]
    return [trial_id for _, trial_id in sorted(valued)]


def _with_ancestors(known: Mapping[int, TrialView], starts: Iterable[int]) -> set[int]:
    found: set[int] = set()
    for start in starts:
        step: int | None = start
        while step is not None and step not in found:
            found.add(step)
            trial = known.get(step)
            step = trial.parent if trial is not None else None
    return found


def _last_generations(known: Mapping[int, TrialView], count: int) -> list[int]:
    """Find trials at most ``count - 1`` generations above the newest there is."""
    generations: dict[int, int] = {}
    for start in known:
        path: list[int] = []
        step: int | None = start
        while step is not None and step in known and step not in generations:
            path.append(step)
            generations[step] = 0  # a cycle, were there one, ends here
            step = known[step].parent
        above = generations[step] if step is not None and step in generations else -1
        for trial_id in reversed(path):
            above += 1
            generations[trial_id] = above
    # An open request has no parent yet, and does not show how far the search is.
    proposed = [generations[t.id] for t in known.values() if not t.request]
    newest = max(proposed, default=0)
    return [trial_id for trial_id, g in generations.items() if g > newest - count]
