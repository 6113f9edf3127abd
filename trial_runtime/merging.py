"""Merging three versions of a state into one: the one both began with, ours, and theirs.

A part that only one side has changed is taken from that side. A part that both have changed is
decided by the rule that the publisher has declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Union

from trial_runtime.api_errors import StoreConflict

#: What may be declared; a function is called with (name, base, mine, theirs).
MergeRule = Union[str, Callable[[str, Any, Any, Any], Any]]

RULES = ("changed", "mine", "theirs", "mean", "add")


_OTHERWISE = (
    "declare another merge: 'mine', 'theirs', or a function; or begin the store with "
    "publish(state, merge='theirs'), so that all go on from one version"
)


class _Absent:
    """Stands for an entry that a state does not have."""

    def __repr__(self) -> str:
        return "<absent>"


ABSENT = _Absent()


def merge(base: Any, mine: Any, theirs: Any, rule: MergeRule) -> Any:
    """The merged state. Arguments are states as they were loaded and are left as they are.

    Args:
        base: what both began with; None if there was nothing.
        mine: what we made of it.
        theirs: what others made of it meanwhile.
        rule: of what both changed: ``"changed"`` refuses it, ``"mine"`` and ``"theirs"`` take
            that side, ``"mean"`` the mean of both, ``"add"`` theirs plus our change; or a
            function.

    Raises:
        StoreConflict: both changed something, and the rule has no answer to that.
    """
    merged = _merge("", ABSENT if base is None else base, mine, theirs, rule)
    return merged


def _merge(name: str, base: Any, mine: Any, theirs: Any, rule: MergeRule) -> Any:
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        merged = {}
        for key in [*theirs, *(key for key in mine if key not in theirs)]:
            before = base.get(key, ABSENT) if isinstance(base, Mapping) else ABSENT
            one = _merge(
                f"{name}.{key}" if name else str(key),
                before,
                mine.get(key, ABSENT),
                theirs.get(key, ABSENT),
                rule,
            )
            if one is not ABSENT:
                merged[key] = one
        return merged
    if _lists_alike(mine, theirs):
        alike = _lists_alike(mine, base)
        before = base if alike else [ABSENT] * len(mine)
        parts = [
            _merge(f"{name}.{number}", *each, rule)
            for number, each in enumerate(zip(before, mine, theirs))
        ]
        return parts if isinstance(mine, list) else tuple(parts)
    if same(mine, base):
        return theirs
    if same(theirs, base):
        return mine
    if rule != "add" and not callable(rule) and same(mine, theirs):
        return mine  # but for "add" the same change twice is two changes
    return _decided(name or "the state", base, mine, theirs, rule)


def _lists_alike(one: Any, other: Any) -> bool:
    both = isinstance(one, (list, tuple)) and type(one) is type(other)
    return both and len(one) == len(other)


def same(one: Any, other: Any) -> bool:
    """Whether two leaves of a state are equal: arrays by type, shape and every number."""
    if one is other:
        return True
    if hasattr(one, "shape") or hasattr(other, "shape"):
        if type(one) is not type(other) or one.shape != other.shape or one.dtype != other.dtype:
            return False
        return bool((one == other).all())
    return type(one) is type(other) and bool(one == other)


def _decided(name: str, base: Any, mine: Any, theirs: Any, rule: MergeRule) -> Any:
    if callable(rule):
        return rule(name, *(None if each is ABSENT else each for each in (base, mine, theirs)))
    if rule == "mine":
        return mine
    if rule == "theirs":
        return theirs
    if rule in ("mean", "add"):
        sides = (mine, theirs) if rule == "mean" else (mine, theirs, base)
        if _numbers_alike(*sides):
            return _as(mine, (mine + theirs) / 2 if rule == "mean" else theirs + (mine - base))
        reason = "these are not numbers of one type and shape"
        if rule == "add" and base is ABSENT and _numbers_alike(mine, theirs):
            reason = "both began it, and there is no version before that to count changes from"
        raise StoreConflict(
            f"this trial and another one have both changed {name}, and the merge {rule!r} has no "
            f"answer to that: {reason}",
            hint=_OTHERWISE,
        )
    raise StoreConflict(
        f"this trial and another one have both changed {name}, and the merge {rule!r} has no "
        "answer to that",
        hint="declare another merge: 'mine', 'theirs', 'mean', 'add', or a function",
    )


def _numbers_alike(*sides: Any) -> bool:
    first = sides[0]
    if hasattr(first, "shape"):
        return all(
            type(each) is type(first) and each.shape == first.shape and each.dtype == first.dtype
            for each in sides
        )
    return all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in sides)


def _as(like: Any, value: Any) -> Any:
    """The value with the type of ``like``: the mean of whole numbers is one."""
    if hasattr(like, "astype"):
        return value.astype(like.dtype)
    if hasattr(like, "dtype"):
        return value.to(like.dtype)
    return type(like)(value)
