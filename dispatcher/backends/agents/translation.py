"""Between the core's words and the wire of agents. Pure."""

from __future__ import annotations

from dispatcher.core.actions import AnswerOffer, StartAttempt, StopAttempt
from dispatcher.core.events import (
    AttemptEnded,
    AttemptStarted,
    Event,
    FinalReported,
    MetricReported,
    VersionOffered,
    WeightsPublished,
)
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, Pinned, Weights
from dispatcher.core.resources import Device, Offer
from dispatcher.errors import ProtocolError
from trial_runtime import wire

_REASONS = {reason.value: reason for reason in EndReason}


def start_order(action: StartAttempt) -> wire.Start:
    """The order that carries out a start."""
    return wire.Start(
        action.trial,
        action.attempt,
        action.parameters,
        action.save_path,
        action.restore_path,
        action.restore_digest,
        action.restore_kind,
        action.devices,
        action.cpus,
        action.memory_bytes,
        action.device_share,
        tuple(_pinned(each) for each in action.versions),
    )


def answer_order(action: AnswerOffer) -> wire.VersionAnswered:
    """The answer to what an attempt offered to a shared store."""
    newest = None if action.newest is None else _pinned(action.newest)
    answer = wire.OfferAnswered(action.digest, action.accepted, newest, action.refusal)
    return wire.VersionAnswered(action.trial, action.attempt, answer)


def _pinned(version: Pinned) -> wire.PinnedVersion:
    return wire.PinnedVersion(version.store, version.number, version.path, version.digest)


def offer_of(told: wire.OfferTold | None) -> Offer | None:
    """What an agent has for trials."""
    if told is None:
        return None
    return Offer(
        devices=tuple(
            Device(
                each.id,
                each.index,
                each.name,
                each.memory_bytes,
                parent=each.parent,
                trouble=each.trouble,
            )
            for each in told.devices
        ),
        cpus=told.cpus,
        memory_bytes=told.memory_bytes,
        custom=told.custom,
        cached=told.cached,
    )


def stop_order(action: StopAttempt) -> wire.Stop:
    """The order that carries out a stop."""
    return wire.Stop(action.trial, action.attempt, action.reason.value, action.grace_s)


def event_of(word: wire.Word) -> Event:
    """What an agent's word means to the core.

    Raises:
        ProtocolError: the word names an end that there is not.
    """
    kind = type(word)
    trial = TrialId(word.trial)
    if kind is wire.MetricRelayed:
        return MetricReported(trial, word.attempt, word.seq, word.value)  # type: ignore[union-attr]
    if isinstance(word, wire.Started):
        return AttemptStarted(trial, word.attempt, word.pid)
    if isinstance(word, wire.FinalRelayed):
        return FinalReported(trial, word.attempt, word.seq, word.value)
    if isinstance(word, wire.PublishedRelayed):
        weights = Weights(word.digest, word.kind, word.nbytes)
        return WeightsPublished(trial, word.attempt, word.seq, weights)
    if isinstance(word, wire.VersionOffered):
        return VersionOffered(
            trial,
            word.attempt,
            word.seq,
            word.store,
            word.base,
            word.path,
            word.digest,
            word.nbytes,
        )
    assert isinstance(word, wire.Ended)
    reason = _REASONS.get(word.reason)
    if reason is None:
        raise ProtocolError(f"an agent ended attempt {trial}.{word.attempt} by {word.reason!r}")
    return AttemptEnded(
        trial,
        word.attempt,
        reason,
        word.exit_code,
        word.signal,
        word.text,
        Weights(word.digest, word.kind, word.nbytes) if word.digest else None,
        word.cpu_s,
        word.wall_s,
    )
