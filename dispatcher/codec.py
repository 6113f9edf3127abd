"""Events and actions to msgpack and back: one encoding for the journal and the tuner host.

A value is encoded as a map of its fields beside its class name, so that a field added
later reads its default from an older journal.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from dispatcher.core import actions, events
from dispatcher.errors import ProtocolError

_encoder = msgspec.msgpack.Encoder()

#: What decoding bytes of a peer can raise: msgspec's own errors and that of text which is not
#: UTF-8 are ValueErrors; deep nesting ends in a RecursionError.
UNREADABLE = (ValueError, RecursionError)

EVENT_CLASSES: dict[str, type] = {cls.__name__: cls for cls in get_args(events.Event)}
ACTION_CLASSES: dict[str, type] = {
    cls.__name__: cls for cls in get_args(actions.TunerAction | actions.WorkerAction)
}
_decoders: dict[str, msgspec.msgpack.Decoder[Any]] = {
    name: msgspec.msgpack.Decoder(cls) for name, cls in {**EVENT_CLASSES, **ACTION_CLASSES}.items()
}


def encode(value: object) -> bytes:
    """The fields of an event or action as msgpack."""
    return _encoder.encode(value)


def decode(name: str, payload: bytes) -> Any:
    """An event or action from its class name and fields.

    Raises:
        ProtocolError: the name is unknown, or the fields do not fit.
    """
    decoder = _decoders.get(name)
    if decoder is None:
        raise ProtocolError(f"unknown message {name!r}", hint="the peer may be a newer bequeath")
    try:
        return decoder.decode(payload)
    except UNREADABLE as error:
        raise ProtocolError(f"malformed {name}: {error}") from error


def journalled(value: Any) -> Any:
    """An event or action as it is read from the journal, of one that other code than ours made.

    Raises:
        ProtocolError: its values are of other types than its fields.
    """
    name = type(value).__name__
    try:
        payload = encode(value)
    except (TypeError, OverflowError, *UNREADABLE) as error:  # msgpack has no form for it
        raise ProtocolError(f"malformed {name}: {error}") from error
    return decode(name, payload)
