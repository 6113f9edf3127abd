"""Shared stores: versions that trials offer, versions that the tuner holds, and versions that may
go."""

from collections.abc import Sequence
from typing import Final

from dispatcher.core import events as e
from dispatcher.core import stores, waits
from dispatcher.core.actions import (
    Action,
    AnswerOffer,
    AnswerWait,
    GrantVersions,
    TellVersion,
)
from dispatcher.core.model import Rule, State, Trial, Version
from dispatcher.core.moves import let_go
from dispatcher.core.resource_match import domain_of
from dispatcher.core.transitions import Effects


def version_offered(state: State, event: e.VersionOffered, out: list[Action]) -> bool:
    """Make it the next version if it was made from the newest one; answer in any case.

    An answer may get lost, and the offer is sent again then: one that was accepted once is
    recognised by its place and digest, and answered as before; nothing is entered twice.

    Args:
        state: changed in place.
        event: the offer.
        out: gets the answer, and the news for the tuner host if there is a new version.
    """
    trial = state.trials[event.trial]
    assert trial.worker is not None
    versions = state.stores.get(event.store, [])
    refusal = stores.objection(state, event.store, event.path, f"{event.trial}.{event.attempt}")
    if not refusal and event.base > len(versions):
        refusal = f"it was made from version {event.base}, and there are {len(versions)}"
    number = 0 if refusal else _number_of(versions, event)
    entered = not refusal and not number and event.base == len(versions)
    if entered:
        number = _enter(state, trial, event, out)
        versions = state.stores[event.store]
    newest = 0 if refusal else number or len(versions)
    if newest:
        stores.note_known(trial, event.store, newest, own=bool(number))
        stores.ask_for_review(state, out)
    out.append(
        AnswerOffer(
            trial.worker,
            trial.id,
            event.attempt,
            event.digest,
            accepted=bool(number),
            newest=stores.pinned(state, event.store, newest) if newest else None,
            refusal=refusal,
        )
    )
    return entered


def _enter(state: State, trial: Trial, event: e.VersionOffered, out: list[Action]) -> int:
    assert trial.worker is not None
    worker = state.workers.get(trial.worker)
    domain = "" if worker is None else domain_of(state, worker)
    state.version_serial += 1
    version = Version(
        event.path,
        event.digest,
        event.nbytes,
        trial.id,
        event.attempt,
        domain,
        state.version_serial,
    )
    number = stores.enter(state, event.store, version)
    if state.host_ready:
        out.append(TellVersion(event.store, number, trial.id))
    _end_waits(state, event.store, number, trial)
    return number


def _end_waits(state: State, store: str, number: int, publisher: Trial) -> None:
    """The tuner host wakes the waiting threads itself; here they are taken off the books."""
    trigger, state.trigger = state.trigger, Rule.VERSION_PUBLISHED
    for waiter_id in list(state.version_waiters.get(store, ())):
        wait = state.waits[waiter_id]
        due = number >= wait.version if wait.version else publisher.id in wait.parents
        if due:
            waits.erase(state, waiter_id)
            let_go(state, state.trials[waiter_id])
    state.trigger = trigger


def _number_of(versions: Sequence[Version | None], event: e.VersionOffered) -> int:
    """The number under which this very offer was accepted before; 0 if it was not."""
    if not 0 <= event.base < len(versions):
        return 0
    version = versions[event.base]
    if version is None:
        return 0
    same = version.path == event.path and version.digest == event.digest
    return event.base + 1 if same else 0


def versions_held(state: State, event: e.VersionsHeld, out: list[Action]) -> bool:
    """Note which versions the tuner holds. Reports of a process that only repeats its past change
    nothing: what it held last is known.

    Args:
        state: changed in place.
        event: all that it holds of one store.
        out: gets a review of the stores, if a version may go now.
    """
    if not state.host_ready:
        return False
    if event.numbers:
        state.held_versions[event.store] = event.numbers
    else:
        state.held_versions.pop(event.store, None)
    stores.ask_for_review(state, out)
    return True


def stores_reviewed(state: State, event: e.StoresReviewed, out: list[Action]) -> None:
    """Grant the versions that nobody can ask for any more. From here on a proposal that pins one of
    these is refused, whatever becomes of the files.

    Args:
        state: changed in place.
        event: ``keep`` and ``question`` of the weight keeper.
        out: gets the grant.
    """
    removed = stores.let_go_of_old(state, event.keep)
    out.append(GrantVersions(removed, stores.kept(state), event.question))


def awaited_version(state: State, event: e.WaitStarted) -> AnswerWait | None:
    """The answer to a wait for a version that can be given at once."""
    newest = len(state.stores.get(event.store, ()))
    if event.version:
        if newest < event.version:
            return None
        return AnswerWait(event.trial, event.ticket, "granted", version=newest)
    (publisher_id,) = event.parents
    publisher = state.trials[publisher_id]
    for store, number in publisher.published:
        if store == event.store:
            return AnswerWait(event.trial, event.ticket, "granted", version=number)
    return None


EFFECTS: Final[Effects] = {
    e.VersionOffered: version_offered,
    e.VersionsHeld: versions_held,
    e.StoresReviewed: stores_reviewed,
}
