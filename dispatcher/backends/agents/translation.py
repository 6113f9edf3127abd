"""Translates between the core's actions and events and the wire of agents. Pure."""

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


def offer_of(message: wire.OfferTold | None) -> Offer | None:
    """The resources that an agent offers to trials."""
    if message is None:
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
            for each in message.devices
        ),
        cpus=message.cpus,
        memory_bytes=message.memory_bytes,
        custom=message.custom,
        cached=message.cached,
    )


def stop_order(action: StopAttempt) -> wire.Stop:
    """The order that carries out a stop."""
    return wire.Stop(action.trial, action.attempt, action.reason.value, action.grace_s)


def event_of(message: wire.Word) -> Event:
    """The event that an agent's message stands for.

    Raises:
        ProtocolError: the message names an end that there is not.
    """
    kind = type(message)
    trial = TrialId(message.trial)
    if kind is wire.MetricRelayed:
        return MetricReported(trial, message.attempt, message.seq, message.value)  # type: ignore[union-attr]
    if isinstance(message, wire.Started):
        return AttemptStarted(trial, message.attempt, message.pid)
    if isinstance(message, wire.FinalRelayed):
        return FinalReported(trial, message.attempt, message.seq, message.value)
    if isinstance(message, wire.PublishedRelayed):
        weights = Weights(message.digest, message.kind, message.nbytes)
        return WeightsPublished(trial, message.attempt, message.seq, weights)
    if isinstance(message, wire.VersionOffered):
        return VersionOffered(
            trial,
            message.attempt,
            message.seq,
            message.store,
            message.base,
            message.path,
            message.digest,
            message.nbytes,
        )
    assert isinstance(message, wire.Ended)
    reason = _REASONS.get(message.reason)
    if reason is None:
        raise ProtocolError(
            f"an agent ended attempt {trial}.{message.attempt} by {message.reason!r}"
        )
    return AttemptEnded(
        trial,
        message.attempt,
        reason,
        message.exit_code,
        message.signal,
        message.text,
        message.cpu_s,
        message.wall_s,
        Weights(message.digest, message.kind, message.nbytes) if message.digest else None,
    )
