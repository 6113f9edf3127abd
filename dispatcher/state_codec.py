"""The core's whole state to bytes and back: what a replay can begin with.

Made from the fields of the core's own records, so that a field added there is kept here
without a word; one that older bytes do not have reads its default. A record says only what
differs from a default: that of a trial that is over takes some two hundred bytes.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from dataclasses import MISSING, fields
from operator import attrgetter
from typing import Any, Final, get_origin, get_type_hints

import msgspec

from dispatcher.codec import UNREADABLE
from dispatcher.core import State
from dispatcher.core.model import Trial, TrialState
from dispatcher.errors import ProtocolError

#: Of the moment, not of the experiment: what was touched since the last commit.
_LEFT_OUT: Final = frozenset({"dirty"})

#: What a metric leaves on the record of a running attempt; afterwards it is of no account,
#: and it leaves no row in the journal.
_OF_RUNNING: Final = {"last_seq": 0, "last_intermediate": None}


def _default(field: Any) -> Any:
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.NODEFAULT


def _struct(name: str, cls: type, replaced: dict[str, Any]) -> Any:
    """A struct with the fields of a dataclass, which leaves out what has its default."""
    hints = get_type_hints(cls)
    found = []
    for field in fields(cls):
        if field.name in _LEFT_OUT:
            continue
        kind, default = hints[field.name], _default(field)
        if get_origin(kind) is deque:
            kind, default = list[kind.__args__[0]], msgspec.field(default_factory=list)  # type: ignore[name-defined]
        if field.name in replaced:
            kind, default = replaced[field.name], msgspec.NODEFAULT
        found.append((field.name, kind, default))
    # Fields without a default come first in a struct, wherever they stand in the dataclass.
    found.sort(key=lambda one: one[2] is not msgspec.NODEFAULT)
    return msgspec.defstruct(name, found, omit_defaults=True)


_TRIAL_NAMES: Final = tuple(field.name for field in fields(Trial))
_TrialWritten: Any = _struct("TrialWritten", Trial, {})
_StateWritten: Any = _struct("StateWritten", State, {"trials": msgspec.Raw})
_StateRead: Any = _struct("StateRead", State, {"trials": list[Trial]})

_of_trial: Final[Callable[[Trial], tuple[Any, ...]]] = attrgetter(*_TrialWritten.__struct_fields__)
#: How msgpack begins an array of up to 2³² items.
_ARRAY: Final = struct.Struct(">BI")

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_StateRead)


def encode_state(state: State) -> bytes:
    """The state as msgpack; takes 3 µs a trial. ``dirty`` is left out.

    Trials are encoded one by one: ten thousand records beside those of the core would leave
    holes in the memory of a process that lives for weeks.
    """
    said = {name: getattr(state, name) for name in _StateWritten.__struct_fields__}
    said = {name: list(v) if isinstance(v, deque) else v for name, v in said.items()}
    packed = bytearray(_ARRAY.pack(0xDD, len(state.trials)))
    for trial in state.trials.values():
        packed += _encoder.encode(_written(trial))
    said["trials"] = msgspec.Raw(packed)
    return _encoder.encode(_StateWritten(**said))


def _written(trial: Trial) -> Any:
    one = _TrialWritten(*_of_trial(trial))
    if trial.state is not TrialState.RUNNING:
        for name, value in _OF_RUNNING.items():
            setattr(one, name, value)
    return one


def decode_state(payload: bytes) -> State:
    """The inverse of :func:`encode_state`.

    Raises:
        ProtocolError: the bytes are no state, or that of a newer bequeath.
    """
    try:
        read = _decoder.decode(payload)
    except UNREADABLE as error:
        raise ProtocolError(f"malformed state: {error}") from error
    said = {name: getattr(read, name) for name in _StateRead.__struct_fields__}
    said["trials"] = {trial.id: trial for trial in read.trials}
    for name, kind in get_type_hints(State).items():
        if get_origin(kind) is deque:
            said[name] = deque(said[name])
    return State(**said)
