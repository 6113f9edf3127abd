"""The core's whole state to bytes and back, so that a replay can begin with it.

The format follows the fields of the core's own records: a field added there is stored here without
a change, and one that older bytes do not have reads its default. Stored are only values that differ
from their defaults: the record of a trial that is over takes some two hundred bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, fields
from operator import attrgetter
from typing import Any, Final, get_type_hints

import msgspec

from dispatcher.codec import UNREADABLE
from dispatcher.core import State
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import Trial, Worker
from dispatcher.core.quarantine import first_return_of
from dispatcher.core.queue_classes import group_queue
from dispatcher.errors import ProtocolError

#: Trials in each part but the first: some tens of kilobytes.
TRIALS_A_PART: Final = 256

#: Trials have parts of their own; ``dirty`` (trials touched since the last commit), ``trigger`` and
#: ``trace`` are of the moment; ``queue_classes`` is computed from ``queued``, ``first_return`` from
#: ``workers``.
_LEFT_OUT: Final = frozenset(
    {"trials", "dirty", "trigger", "trace", "queue_classes", "first_return"}
)

#: Fields whose names have changed since states were first stored, with the names in the bytes.
_STORED_NAMES: Final = {
    Trial: {"result": "told"},
    Worker: {"health": "conduct", "excluded": "kept_out"},
}

#: Was a list before 0.2.
_QUEUED: Final = "queued"
_WORKERS: Final = "workers"


def _default(field: Any) -> Any:
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.NODEFAULT


def _struct(name: str, cls: type) -> Any:
    """A struct with the fields of a dataclass. It leaves out fields that have their defaults."""
    hints = get_type_hints(cls)
    struct_fields = []
    for field in fields(cls):
        if field.name in _LEFT_OUT:
            continue
        kind, default = hints[field.name], _default(field)
        if cls is State and field.name == _QUEUED:
            kind = kind | list[TrialId]
        if cls is State and field.name == _WORKERS:
            kind = dict[WorkerId, _StoredWorker]
        struct_fields.append((field.name, kind, default))
    # Fields without a default come first in a struct, wherever they stand in the dataclass.
    struct_fields.sort(key=lambda one: one[2] is not msgspec.NODEFAULT)
    rename = _STORED_NAMES.get(cls)
    return msgspec.defstruct(name, struct_fields, omit_defaults=True, rename=rename)


_StoredTrial: Any = _struct("StoredTrial", Trial)
_StoredWorker: Any = _struct("StoredWorker", Worker)
_StoredState: Any = _struct("StoredState", State)

#: The values of all fields, in the order of the struct, and in that of the dataclass.
_Values = Callable[[Any], tuple[Any, ...]]
_for_struct: Final[dict[type, _Values]] = {
    Trial: attrgetter(*_StoredTrial.__struct_fields__),
    Worker: attrgetter(*_StoredWorker.__struct_fields__),
}
_for_dataclass: Final[dict[type, _Values]] = {
    cls: attrgetter(*(field.name for field in fields(cls))) for cls in (Trial, Worker)
}
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_StoredState)
_trials_decoder: Final = msgspec.msgpack.Decoder(list[_StoredTrial])


def encode_state(state: State) -> Iterator[bytes]:
    """The state as msgpack, part by part; takes 3 µs a trial. ``dirty`` is left out.

    The first part holds all but the trials, each other one :data:`TRIALS_A_PART` of them: a
    process that lives for weeks should not ask for megabytes at once. The state must not change
    before the last part is taken.
    """
    values = {name: getattr(state, name) for name in _StoredState.__struct_fields__}
    of_trial, of_worker = _for_struct[Trial], _for_struct[Worker]
    values[_WORKERS] = {
        name: _StoredWorker(*of_worker(worker)) for name, worker in state.workers.items()
    }
    yield _encoder.encode(_StoredState(**values))
    trials = iter(state.trials.values())
    while some := list(itertools.islice(trials, TRIALS_A_PART)):
        yield _encoder.encode([_StoredTrial(*of_trial(trial)) for trial in some])


def decode_state(parts: Iterable[bytes]) -> State:
    """The inverse of :func:`encode_state`.

    Raises:
        ProtocolError: the bytes are no state, or that of a newer bequeath.
    """
    of_trial = _for_dataclass[Trial]
    try:
        first, *others = parts
        stored = _decoder.decode(first)
        stored_trials = {one.id: one for part in others for one in _trials_decoder.decode(part)}
    except UNREADABLE as error:
        raise ProtocolError(f"malformed state: {error}") from error
    values = {name: getattr(stored, name) for name in _StoredState.__struct_fields__}
    values[_QUEUED] = dict.fromkeys(values[_QUEUED])
    of_worker = _for_dataclass[Worker]
    values[_WORKERS] = {name: Worker(*of_worker(one)) for name, one in stored.workers.items()}
    if not stored.came:  # older states have no count: the order of the queue is all there is
        values["came"] = len(values[_QUEUED])
        for place, number in enumerate(values[_QUEUED], 1):
            stored_trials[number].place = place
    trials = {number: Trial(*of_trial(one)) for number, one in stored_trials.items()}
    state = State(**values, trials=trials)
    state.queue_classes = group_queue(state)
    state.first_return = first_return_of(state)
    return state
