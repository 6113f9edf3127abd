"""The core's whole state to bytes and back: what a replay can begin with.

Made from the fields of the core's own records, so that a field added there is kept here
without a word; one that older bytes do not have reads its default. A record says only what
differs from a default: that of a trial that is over takes some two hundred bytes.
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
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Trial, TrialState
from dispatcher.core.queue_classes import told_apart
from dispatcher.errors import ProtocolError

#: Trials in each part but the first: some tens of kilobytes.
TRIALS_A_PART: Final = 256

#: Trials have parts of their own; ``dirty`` is of the moment: what was touched since the last
#: commit; ``lines`` is what ``queued`` says, told apart.
_LEFT_OUT: Final = frozenset({"trials", "dirty", "lines"})

#: Was a list before 0.2.
_QUEUED: Final = "queued"

#: What a metric leaves on the record of a running attempt; afterwards it is of no account,
#: and it leaves no row in the journal.
_OF_RUNNING: Final = {"last_seq": 0, "last_intermediate": None}


def _default(field: Any) -> Any:
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.NODEFAULT


def _struct(name: str, cls: type) -> Any:
    """A struct with the fields of a dataclass, which leaves out what has its default."""
    hints = get_type_hints(cls)
    found = []
    for field in fields(cls):
        if field.name in _LEFT_OUT:
            continue
        kind, default = hints[field.name], _default(field)
        if cls is State and field.name == _QUEUED:
            kind = kind | list[TrialId]
        found.append((field.name, kind, default))
    # Fields without a default come first in a struct, wherever they stand in the dataclass.
    found.sort(key=lambda one: one[2] is not msgspec.NODEFAULT)
    return msgspec.defstruct(name, found, omit_defaults=True)


_TRIAL_NAMES: Final = tuple(field.name for field in fields(Trial))
_TrialWritten: Any = _struct("TrialWritten", Trial)
_StateWritten: Any = _struct("StateWritten", State)
_StateRead: Any = _struct("StateRead", State)

_of_trial: Final[Callable[[Trial], tuple[Any, ...]]] = attrgetter(*_TrialWritten.__struct_fields__)
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_StateRead)
_trials_decoder: Final = msgspec.msgpack.Decoder(list[Trial])


def encode_state(state: State) -> Iterator[bytes]:
    """The state as msgpack, part by part; takes 3 µs a trial. ``dirty`` is left out.

    The first part holds all but the trials, each other one :data:`TRIALS_A_PART` of them: a
    process that lives for weeks should not ask for megabytes at once. The state must not change
    before the last part is taken.
    """
    said = {name: getattr(state, name) for name in _StateWritten.__struct_fields__}
    yield _encoder.encode(_StateWritten(**said))
    trials = iter(state.trials.values())
    while some := list(itertools.islice(trials, TRIALS_A_PART)):
        yield _encoder.encode([_written(trial) for trial in some])


def _written(trial: Trial) -> Any:
    one = _TrialWritten(*_of_trial(trial))
    if trial.state is not TrialState.RUNNING:
        for name, value in _OF_RUNNING.items():
            setattr(one, name, value)
    return one


def decode_state(parts: Iterable[bytes]) -> State:
    """The inverse of :func:`encode_state`.

    Raises:
        ProtocolError: the bytes are no state, or that of a newer bequeath.
    """
    try:
        first, *others = parts
        read = _decoder.decode(first)
        trials = [trial for part in others for trial in _trials_decoder.decode(part)]
    except UNREADABLE as error:
        raise ProtocolError(f"malformed state: {error}") from error
    said = {name: getattr(read, name) for name in _StateRead.__struct_fields__}
    said[_QUEUED] = dict.fromkeys(said[_QUEUED])
    state = State(**said, trials={trial.id: trial for trial in trials})
    if not state.came:  # nobody counted then: the queue alone says who came before whom
        for place, number in enumerate(state.queued, 1):
            state.trials[number].place = state.came = place
    state.lines = told_apart(state)
    return state
