"""Shared stores of weights: named sequences of versions that never change.

A version is what a trial wrote while it runs and the core then gave a number: the next one, if
it was made from the newest, and none otherwise. So versions form one line, each made with the
one before in view, however many trials write at once (compare-and-swap; who lost merges and
offers again). Readers name the version they read, and are not disturbed by later ones.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from dispatcher.core.model import Pinned, State

#: Under it parameters say which versions a trial reads: ``{"omega": 3}``.
PINS_KEY = "shared_stores"

#: Names of stores are names of folders, on any file system.
LONGEST_NAME = 64
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")

#: Stores of one experiment, and versions of one of them: far beyond any use, so that a trial
#: in a loop cannot make the state grow without bound.
MOST_STORES = 1_000
MOST_VERSIONS = 1_000_000

#: What a trial adds to its own name, so that each folder is written once.
_LONGEST_LAST = 32
_HEX = frozenset("0123456789abcdef")


class BadPins(ValueError):
    """``str()`` says what is wrong with them, in one line."""


def read_pins(parameters: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """The versions that parameters pin, by name.

    Raises:
        BadPins: what stands under :data:`PINS_KEY` is no mapping of names to numbers from 1.
    """
    told = parameters.get(PINS_KEY, {})
    if not isinstance(told, Mapping):
        raise BadPins(f"must be a mapping such as {{'omega': 3}}, not {told!r}")
    for name, number in told.items():
        if not is_name(str(name)):
            raise BadPins(f"{name!r} is no name of a shared store")
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise BadPins(f"{name}: {number!r} is no number of a version: they count from 1")
    return tuple((str(name), number) for name, number in sorted(told.items()))


def is_name(name: str) -> bool:
    """Whether a store may be called so."""
    fits = 0 < len(name) <= LONGEST_NAME and name[0] in _LETTERS
    return fits and _LETTERS.issuperset(name.translate({ord(c): "a" for c in "._-"}))


def pinned(state: State, store: str, number: int) -> Pinned:
    """A version that there is, as a reader needs it."""
    version = state.stores[store][number - 1]
    return Pinned(store, number, version.path, version.digest)


def unknown(state: State, reads: Iterable[tuple[str, int]]) -> str | None:
    """Why these versions cannot be read, in a sentence; None if they can."""
    for store, number in reads:
        there = len(state.stores.get(store, ()))
        if not 1 <= number <= there:
            newest = f"its newest is {there}" if there else "it has none yet"
            return f"the shared store {store!r} has no version {number}: {newest}"
    return None


def objection(state: State, store: str, path: str, owner: str) -> str:
    """Why this can be no version of a store, wherever it stands; empty if it can.

    Args:
        state: as it is.
        store: the name.
        path: where it lies: an attempt writes below names that begin with its own.
        owner: the attempt, such as ``17.1``.
    """
    if not is_name(store):
        return f"{store!r} is no name of a shared store: letters, digits and -._ are, up to 64"
    above, _, name = path.rpartition("/")
    attempt, _, last = name.partition("-")
    proper = 0 < len(last) <= _LONGEST_LAST and _HEX.issuperset(last)
    if above != store or attempt != owner or not proper:
        return f"{path!r} is not where attempt {owner} may write versions of {store!r}"
    if store not in state.stores and len(state.stores) >= MOST_STORES:
        return f"there are {MOST_STORES:,} shared stores already"
    if len(state.stores.get(store, ())) >= MOST_VERSIONS:
        return f"the shared store {store!r} has {MOST_VERSIONS:,} versions already"
    return ""
