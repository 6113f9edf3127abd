"""Shared stores of weights: named sequences of versions that never change.

A version is what a trial wrote while it runs and the core then gave a number: the next one, if it
was made from the newest, and none otherwise. So versions form one line, each made with the one
before in view, however many trials write at once (compare-and-swap; a trial that lost merges and
offers again). Readers name the version they read, and are not disturbed by later ones.

Old versions go (:func:`let_go_of_old`) once nobody can ask for them. The core alone knows which
versions are pinned, were named to an attempt, or may still be pinned.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dispatcher.core.actions import Action, ReviewStores
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Pinned, State, Trial, Version

#: Under it parameters say which versions a trial reads: ``{"omega": 3}``.
PINS_KEY = "shared_stores"

#: What the restore path of a trial begins with that starts from a version: ``.stores/omega/3``.
RESTORED_FROM = ".stores"

#: Names of stores are names of folders, on any file system.
LONGEST_NAME = 64
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")

#: Stores of one experiment, and versions of one of them: far beyond any use, so that a trial
#: in a loop cannot make the state grow without bound.
MOST_STORES = 1_000
MOST_VERSIONS = 1_000_000

#: Trials and requests at hand up to which all are looked at for each that goes on. Of ten thousand
#: that waited for one version each would look at all others: seconds of the engine's thread.
FEW = 500

#: What a trial adds to its own name, so that each folder is written once.
_LONGEST_LAST = 32
_HEX = frozenset("0123456789abcdef")


class BadPins(ValueError):
    """Raised for bad pins: ``str()`` says in one line what is wrong with them."""


def read_pins(parameters: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """The versions that parameters pin, by name.

    Raises:
        BadPins: what stands under :data:`PINS_KEY` is no mapping of names to numbers from 1.
    """
    pins = parameters.get(PINS_KEY, {})
    if not isinstance(pins, Mapping):
        raise BadPins(f"must be a mapping such as {{'omega': 3}}, not {pins!r}")
    for name, number in pins.items():
        if not is_name(str(name)):
            raise BadPins(f"{name!r} is no name of a shared store")
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise BadPins(f"{name}: {number!r} is no number of a version: they count from 1")
    return tuple((str(name), number) for name, number in sorted(pins.items()))


def read_version(path: str) -> tuple[str, int] | None:
    """The store and number that a restore path names; None if it is the path of a trial's weights.

    Raises:
        BadPins: it begins as the path of a version does, and is none.
    """
    above, _, rest = path.partition("/")
    if above != RESTORED_FROM:
        return None
    name, _, number = rest.partition("/")
    digits = number.lstrip("0")
    if not is_name(name) or not number.isdecimal() or not 0 < len(digits) <= 7:
        raise BadPins(f"{path!r} names no version of a shared store, as '.stores/omega/3' does")
    return name, int(digits)


def is_name(name: str) -> bool:
    """Whether a store may be called so."""
    fits = 0 < len(name) <= LONGEST_NAME and name[0] in _LETTERS
    return fits and _LETTERS.issuperset(name.translate({ord(c): "a" for c in "._-"}))


def there(state: State, store: str, number: int) -> Version | None:
    """A version, if there is one of this number and it was not removed.

    Args:
        state: as it is.
        store: its name.
        number: of the version, from 1.
    """
    versions = state.stores.get(store, ())
    return versions[number - 1] if 1 <= number <= len(versions) else None


def pinned(state: State, store: str, number: int) -> Pinned:
    """A version that is there, as a reader needs it.

    Args:
        state: as it is.
        store: its name.
        number: of a version that is there.
    """
    version = there(state, store, number)
    assert version is not None, "kept for whoever reads it"
    return Pinned(store, number, version.path, version.digest)


def unknown(state: State, reads: Iterable[tuple[str, int]]) -> str | None:
    """Why these versions cannot be read, in a sentence; None if they can."""
    for store, number in reads:
        if there(state, store, number) is not None:
            continue
        newest = len(state.stores.get(store, ()))
        if 1 <= number <= newest:
            return (
                f"version {number} of the shared store {store!r} was removed: sharedStores says "
                "how many are kept, and hold() keeps those that trials to come will pin"
            )
        newest_text = f"its newest is {newest}" if newest else "it has none yet"
        return f"the shared store {store!r} has no version {number}: {newest_text}"
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


# ---- what may go -----------------------------------------------------------------------------


def enter(state: State, store: str, version: Version) -> int:
    """Make it the newest version; its number.

    Args:
        state: changed in place.
        store: its name; it is made with its first version.
        version: the new one.
    """
    numbers = _kept(state, store)
    versions = state.stores.setdefault(store, [])
    versions.append(version)
    numbers.append(len(versions))
    return len(versions)


def note_known(trial: Trial, store: str, number: int, *, own: bool) -> None:
    """Note which version a running attempt knows of: it may read that one as long as it runs, until
    it has published one of its own, which it has then.

    Args:
        trial: changed in place.
        store: its name.
        number: of the version.
        own: the attempt has published it.
    """
    before = () if own else tuple(each for each in trial.heard if each != (store, number))
    others = tuple(each for each in trial.heard if own and each[0] != store)
    trial.heard = (*before, *others, (store, number))
    if own:
        published = tuple(each for each in trial.published if each[0] != store)
        trial.published = (*published, (store, number))


def bound_of(state: State, store: str) -> int:
    """How many of the newest versions stay in any case; 0: all."""
    settings = state.settings
    return settings.keep_versions_of.get(store, settings.keep_versions)


def ask_for_review(state: State, out: list[Action]) -> None:
    """Let the weight keeper look, if it would be granted a version. Otherwise it would read a share
    for nothing, each second for as long as a trial reads an old version. Where many trials and
    requests are at hand it is asked all the same, see :data:`FEW`."""
    if not _over_bound(state):
        return
    requests = len(state.open) + len(state.blocked)
    trials = len(state.held) + len(state.queued) + len(state.running) + len(state.backoff)
    many = requests + trials > FEW
    if many or any(gone for _, gone, _ in _judged(state, 0)):
        out.append(ReviewStores())


def let_go_of_old(state: State, keep: int = 0) -> tuple[tuple[str, int, Version], ...]:
    """Take those versions off the books that are older than the newest ``keep`` (0: as many as the
    settings say) and that nobody needs.

    Needed are versions that a trial which has not ended reads or knows of, versions that the tuner
    holds, and, for as long as a request is open, the version that was the newest when it was asked
    for, with all after that: the tuner may be about to pin it.
    """
    removed = []
    for store, gone, staying in _judged(state, keep):
        for number in gone:
            version = there(state, store, number)
            assert version is not None
            removed.append((store, number, version))
        state.kept_versions[store] = staying
    for store, number, _ in removed:
        state.stores[store][number - 1] = None
    return tuple(removed)


def _judged(state: State, keep: int) -> Iterator[tuple[str, list[int], list[int]]]:
    """Each store with more versions than are kept in any case, with those that may go, and those
    that stay."""
    over = _over_bound(state, keep)
    if not over:
        return
    needed = set(_needed(state))
    asked = (state.trials[each].asked_serial for each in (*state.open, *state.blocked))
    oldest_asked = min(asked, default=state.version_serial)
    for store, bound in over.items():
        versions = state.stores[store]
        numbers = _kept(state, store)
        gone: list[int] = []
        staying: list[int] = []
        for number in numbers[:-bound]:
            version = versions[number - 1]
            assert version is not None
            after = versions[number]  # this is not the newest; one that is gone was old then, too
            newest_then = after is not None and after.serial > oldest_asked
            stays = (store, number) in needed or version.serial > oldest_asked or newest_then
            (staying if stays else gone).append(number)
        yield store, gone, staying + numbers[-bound:]


def _over_bound(state: State, keep: int = 0) -> dict[str, int]:
    """Stores with more versions than are kept in any case, and how many those are."""
    bounds = {store: keep or bound_of(state, store) for store in state.stores}
    return {each: bound for each, bound in bounds.items() if 0 < bound < len(_kept(state, each))}


def kept(state: State) -> tuple[tuple[str, int, Version], ...]:
    """All versions that are there."""
    versions = []
    for store in state.stores:
        for number in _kept(state, store):
            version = there(state, store, number)
            assert version is not None
            versions.append((store, number, version))
    return tuple(versions)


def _kept(state: State, store: str) -> list[int]:
    """The numbers of a store's versions; older states do not have them written down."""
    known = state.kept_versions.get(store)
    if known is None:
        versions = state.stores.get(store, [])
        known = [number for number, each in enumerate(versions, 1) if each is not None]
        state.kept_versions[store] = known
    return known


def readers(state: State) -> Iterator[tuple[TrialId, tuple[str, int]]]:
    """Trials that have not ended, with each version (store, number) that they read or may read."""
    for collection in (state.held, state.queued, state.running, state.backoff):
        for trial_id in collection:
            trial = state.trials[trial_id]
            for version in (*trial.reads, *trial.heard):
                yield trial_id, version


def _needed(state: State) -> Iterator[tuple[str, int]]:
    for _, version in readers(state):
        yield version
    for store, numbers in state.held_versions.items():
        for number in numbers:
            yield store, number
