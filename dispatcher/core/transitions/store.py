"""What trials offer to shared stores."""

from dispatcher.core import events as e
from dispatcher.core.actions import Action, AnswerOffer, TellVersion
from dispatcher.core.fitting import domain_of
from dispatcher.core.model import State, Version
from dispatcher.core.stores import objection, pinned


def version_offered(state: State, event: e.VersionOffered, out: list[Action]) -> bool:
    """Make it the next version if it was made from the newest one; answer in any case.

    An answer may get lost, and the offer is said again then: what was accepted once is found by
    its place and digest, and answered as before; nothing is entered twice.
    """
    trial = state.trials[event.trial]
    assert trial.worker is not None
    versions = state.stores.get(event.store, [])
    refusal = objection(state, event.store, event.path, f"{event.trial}.{event.attempt}")
    if not refusal and event.base > len(versions):
        refusal = f"it was made from version {event.base}, and there are {len(versions)}"
    number = 0 if refusal else _number_of(versions, event)
    entered = not refusal and not number and event.base == len(versions)
    if entered:
        worker = state.workers.get(trial.worker)
        domain = "" if worker is None else domain_of(state, worker)
        versions.append(
            Version(event.path, event.digest, event.nbytes, trial.id, event.attempt, domain)
        )
        state.stores[event.store] = versions
        number = len(versions)
        if state.host_ready:
            out.append(TellVersion(event.store, number))
    told = number or len(versions)
    out.append(
        AnswerOffer(
            trial.worker,
            trial.id,
            event.attempt,
            event.digest,
            accepted=bool(number),
            newest=pinned(state, event.store, told) if told else None,
            refusal=refusal,
        )
    )
    return entered


def _number_of(versions: list[Version], event: e.VersionOffered) -> int:
    """The number under which this very offer was accepted before; 0 if it was not."""
    if not 0 <= event.base < len(versions):
        return 0
    version = versions[event.base]
    same = version.path == event.path and version.digest == event.digest
    return event.base + 1 if same else 0
