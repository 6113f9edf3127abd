"""Translates what agents say of their hosts, and the head's answers to trials. Pure.

Facts and orders of attempts need none: the core's types are the agents', see
:mod:`trial_runtime.facts`.
"""

from __future__ import annotations

from dispatcher.core.actions import AnswerOffer, StartAttempt
from dispatcher.core.events import AttemptEnded
from dispatcher.core.model import EndReason, Pinned
from dispatcher.core.resources import Device, Offer
from trial_runtime import wire


def answer_order(action: AnswerOffer) -> wire.VersionAnswered:
    """The answer to what an attempt offered to a shared store."""
    newest = None if action.newest is None else _pinned(action.newest)
    answer = wire.OfferAnswered(action.digest, action.accepted, newest, action.refusal)
    return wire.VersionAnswered(action.trial, action.attempt, answer)


def end_of_too_large(action: StartAttempt) -> AttemptEnded:
    """The end of an attempt whose order no frame can carry."""
    text = (
        f"its parameters are too large to be sent to an agent: {len(action.parameters):,} "
        "characters of JSON; keep large things in files and pass their paths"
    )
    return AttemptEnded(action.trial, action.attempt, EndReason.START_FAILED, text=text)


def _pinned(version: Pinned) -> wire.PinnedVersion:
    return wire.PinnedVersion(version.store, version.number, version.path, version.digest)


def offer_of(message: wire.OfferMessage | None) -> Offer | None:
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
