"""Facts of attempts, and orders about them, as the arrays that travel between agent and head.

An array is a tag and the fields of a type of :mod:`trial_runtime.facts`, in their order but for one
type. The types alone say which these are and what they may hold; here is only what their bounds
mean. Weights lie flat in the array, and the address of an order is left out: who receives it knows
who it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Optional, Union, get_args, get_origin, get_type_hints

import msgspec

from trial_runtime import facts, trial_wire
from trial_runtime.facts import AttemptFact, AttemptOrder, Pinned, Weights
from trial_runtime.resource_wire import Amount
from trial_runtime.session_file import PinnedVersion
from trial_runtime.trial_wire import UNREADABLE, Count, Name, WeightsKind, WireError, brief

#: What msgspec checks for each bound of a plain field.
_BOUNDED: dict[Any, Any] = {
    facts.TrialId: Count,
    facts.Count: Count,
    facts.Code: trial_wire.Code,
    facts.Seconds: trial_wire.Seconds,
    facts.Amount: Amount,
    facts.Name: Name,
    facts.Text: trial_wire.Text,
    facts.Kind: WeightsKind,
    facts.Unbounded: str,
    facts.EndReason: facts.EndReason,
    type(None): None,
}


def _bounded(hint: Any) -> Any:
    """The type that msgspec checks a plain field by. One without a bound is a fault of ours, which
    the first import finds."""
    if hint in _BOUNDED:
        return _BOUNDED[hint]
    inner = get_args(hint)
    if get_origin(hint) is Union:
        return Union[tuple(_bounded(each) for each in inner)]
    if get_origin(hint) is tuple and inner[1:] == (...,):
        return tuple[_bounded(inner[0]), ...]  # type: ignore[misc]
    raise TypeError(f"no bound is known for {hint!r}: a peer could send anything")


#: The field of an order that is not sent.
_ADDRESS = "worker"

_Cells = Callable[[Any], "tuple[Any, ...]"]


class _Part(NamedTuple):
    """A field that is no plain value: its columns, and the way into them and back."""

    columns: tuple[tuple[Any, ...], ...]
    write: Callable[[Any], tuple[Any, ...]]
    read: Callable[..., Any]


#: Weights lie flat among the other columns, and are empty there where there are none.
_in_columns = attrgetter("digest", "kind", "nbytes")
_EMPTY = ("", "", 0)
_DIGEST, _KIND, _NBYTES = (
    _bounded(hint) for hint in get_type_hints(Weights, include_extras=True).values()
)
_PARTS: dict[Any, _Part] = {
    Weights: _Part(
        (("digest", _DIGEST), ("kind", _KIND), ("nbytes", _NBYTES)), _in_columns, Weights
    ),
    Optional[Weights]: _Part(
        (("digest", _DIGEST, ""), ("kind", Union[_KIND, Literal[""]], ""), ("nbytes", _NBYTES, 0)),
        lambda weights: _EMPTY if weights is None else _in_columns(weights),
        lambda digest, *others: Weights(digest, *others) if digest else None,
    ),
    tuple[Pinned, ...]: _Part(
        (("versions", tuple[PinnedVersion, ...], ()),),
        lambda pins: (tuple(PinnedVersion(*dataclasses.astuple(pin)) for pin in pins),),
        lambda sent: tuple(Pinned(*msgspec.structs.astuple(version)) for version in sent),
    ),
}


class _Form(NamedTuple):
    """The array of one type: how msgspec decodes it, and the way into it and back."""

    layout: Any
    write: Callable[[Any], tuple[Any, ...]]
    read: Callable[..., Any]  # of what was decoded, and the address where there is one


def _form(cls: type, tag: str, order: tuple[str, ...] = ()) -> _Form:
    """The form of a type, with its fields in their own order or in another one."""
    hints = get_type_hints(cls, include_extras=True)
    own = {field.name: field for field in dataclasses.fields(cls) if field.name != _ADDRESS}
    sent = [own[name] for name in order or own]
    columns: list[tuple[Any, ...]] = []
    part, at = None, 0  # at: the column where the part begins
    for field in sent:
        if hints[field.name] in _PARTS:
            part, at = _PARTS[hints[field.name]], len(columns)
            columns += part.columns
        else:
            default = () if field.default is dataclasses.MISSING else (field.default,)
            columns.append((field.name, _bounded(hints[field.name]), *default))
    layout = msgspec.defstruct(f"_{cls.__name__}", columns, array_like=True, tag=tag, frozen=True)
    fields: _Cells = attrgetter(*(field.name for field in sent))
    cells: _Cells = attrgetter(*(column[0] for column in columns))
    if part is not None:
        fields, cells = _laid_out(fields, part, at), _gathered(cells, part, at)
    if order:
        read: Callable[..., Any] = lambda row: cls(**dict(zip(order, cells(row))))  # noqa: E731
    elif _ADDRESS in hints:
        read = lambda row, worker: cls(worker, *cells(row))  # noqa: E731
    else:
        read = lambda row: cls(*cells(row))  # noqa: E731
    return _Form(layout, lambda value: (tag, *fields(value)), read)


def _laid_out(fields: _Cells, part: _Part, at: int) -> _Cells:
    def cells(value: Any) -> tuple[Any, ...]:
        values = fields(value)
        return (*values[:at], *part.write(values[at]), *values[at + 1 :])

    return cells


def _gathered(cells: _Cells, part: _Part, at: int) -> _Cells:
    end = at + len(part.columns)

    def fields(row: Any) -> tuple[Any, ...]:
        values = cells(row)
        return (*values[:at], part.read(*values[at:end]), *values[end:])

    return fields


#: Weights were added to the array last, and stand before the seconds in the type.
_ENDED = ("trial", "attempt", "reason", "exit_code", "signal", "text", "cpu_s", "wall_s", "weights")

_FACTS = {
    facts.AttemptStarted: _form(facts.AttemptStarted, "s"),
    facts.MetricReported: _form(facts.MetricReported, "m"),
    facts.FinalReported: _form(facts.FinalReported, "f"),
    facts.WeightsPublished: _form(facts.WeightsPublished, "w"),
    facts.VersionOffered: _form(facts.VersionOffered, "v"),
    facts.AttemptEnded: _form(facts.AttemptEnded, "e", _ENDED),
}
_ORDERS = {
    facts.StartAttempt: _form(facts.StartAttempt, "s"),
    facts.StopAttempt: _form(facts.StopAttempt, "t"),
}
_WRITERS = {cls: form.write for cls, form in {**_FACTS, **_ORDERS}.items()}
_READERS = {form.layout: form.read for form in (*_FACTS.values(), *_ORDERS.values())}

#: The orders as a frame of the head carries them; :func:`order_of` makes orders of them.
ORDER_LAYOUTS = tuple(form.layout for form in _ORDERS.values())

_encoder = msgspec.msgpack.Encoder()
_fact: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
    Union[tuple(form.layout for form in _FACTS.values())]
)


def encode_fact(fact: AttemptFact) -> msgspec.Raw:
    """Encode a fact as :class:`trial_runtime.wire.AttemptMessages` carries it, once for however
    often it is sent."""
    return msgspec.Raw(_encoder.encode(_WRITERS[type(fact)](fact)))


def decode_fact(raw: msgspec.Raw | bytes) -> AttemptFact:
    """Decode what :func:`encode_fact` returned; raises :class:`WireError`."""
    try:
        row = _fact.decode(raw)
    except UNREADABLE as error:
        raise WireError(f"malformed message: {brief(error)}") from error
    fact: AttemptFact = _READERS[type(row)](row)
    return fact


def array_of(order: AttemptOrder) -> tuple[Any, ...]:
    """The array that the frame of a head carries for an order."""
    return _WRITERS[type(order)](order)


def order_of(row: Any, worker: str) -> AttemptOrder:
    """The order that was decoded as one of :data:`ORDER_LAYOUTS`, for the worker that reads it."""
    order: AttemptOrder = _READERS[type(row)](row, worker)
    return order
