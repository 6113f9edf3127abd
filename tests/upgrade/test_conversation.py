"""What head, agent, tuner host and trials of an older release said is still understood.

``conversation-VERSION.jsonl`` was recorded where each process reads what came in: one message a
line, with the function that read it, its bytes, and what it was read as. The bytes must read
today as the same types with the same values; fields that were added since may be there, too.
``messages-VERSION.jsonl`` has every message about attempts in the same form, with and without
what may be left out of it.

What is written today must be read by an agent or a head of then, too: what was read, and is written
again, are the same bytes.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trial_runtime import wire
from trial_runtime.fact_wire import decode_fact, encode_fact

HERE = Path(__file__).parent
CONVERSATIONS = sorted(HERE.glob("conversation-*.jsonl"))
RECORDED = [*CONVERSATIONS, *sorted(HERE.glob("messages-*.jsonl"))]


def _meaning(value: Any) -> Any:
    """As it was written down when it was recorded."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, msgspec.Raw):
        return {"raw": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, msgspec.Struct) or dataclasses.is_dataclass(value):
        names = (
            value.__struct_fields__
            if isinstance(value, msgspec.Struct)
            else [field.name for field in dataclasses.fields(value)]
        )
        fields = {name: _meaning(getattr(value, name)) for name in names}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, list | tuple | set | frozenset):
        return [_meaning(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _meaning(one) for key, one in value.items()}
    return value


#: Names that are our own, since messages travel as arrays: what was recorded, and today's.
RENAMED = {
    "Ended": "AttemptEnded",
    "FinalRelayed": "FinalReported",
    "MetricRelayed": "MetricReported",
    "Published": "PublishedMessage",
    "PublishedRelayed": "WeightsPublished",
    "Start": "StartAttempt",
    "Started": "AttemptStarted",
    "Stop": "StopAttempt",
    "PinnedVersion": "Pinned",
    "Words": "AttemptMessages",
    "words": "messages",
}


def _read_from_head(payload: bytes) -> Any:
    frame = wire.from_head(payload)
    return {**_meaning(frame), "messages": _meaning(wire.decode_orders(frame, "here"))}


def _read_of_attempt(payload: bytes) -> Any:
    """With the fields of its weights beside the others, as they lie in the array."""
    meaning = _meaning(decode_fact(payload))
    weights = meaning.pop("weights", None) or {"digest": "", "kind": "", "nbytes": 0}
    return {**weights, **meaning}


#: Today's readers of what these two have read.
READERS = {
    "trial_runtime.wire:from_head": _read_from_head,
    "trial_runtime.wire:decode_word": _read_of_attempt,
}


def _read(reader: str, payload: bytes) -> Any:
    if reader in READERS:
        return READERS[reader](payload)
    module, name = reader.split(":")
    return _meaning(getattr(importlib.import_module(module), name)(payload))


def _missing(was: Any, now: Any, where: str) -> list[str]:
    """Where the old meaning is not part of the new one."""
    if isinstance(was, dict) and isinstance(now, dict):
        found = []
        for key, value in was.items():
            key = key if key in now else RENAMED.get(key, key)
            if key not in now:
                found.append(f"{where}.{key} is gone")
            elif key == "type":
                same = now[key] in (value, RENAMED.get(value))
                found += [] if same else [f"{where} was a {value} and is a {now[key]}"]
            else:
                found += _missing(value, now[key], f"{where}.{key}")
        return found
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = enumerate(zip(was, now, strict=True))
        return [text for i, (a, b) in pairs for text in _missing(a, b, f"{where}[{i}]")]
    return [] if was == now else [f"{where} was {was!r} and is {now!r}"]


def _lines(recorded: Path, *readers: str) -> Iterator[tuple[int, str, bytes, Any]]:
    """Number, reader's name, bytes and meaning of each message that one of these has read."""
    for number, line in enumerate(recorded.read_text().splitlines(), start=1):
        message = json.loads(line)
        if not readers or message["decoder"] in readers:
            yield (
                number,
                message["decoder"],
                base64.b64decode(message["payload"]),
                message["meaning"],
            )


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_recorded_messages_mean_what_they_meant(recorded: Path) -> None:
    differing = []
    for number, reader, payload, meaning in _lines(recorded):
        differing += _missing(meaning, _read(reader, payload), f"line {number}, {reader}")
    assert differing == []


@pytest.mark.parametrize("recorded", CONVERSATIONS, ids=lambda path: path.stem)
def test_every_door_was_recorded(recorded: Path) -> None:
    assert len({reader for _, reader, _, _ in _lines(recorded)}) == 7


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_messages_of_attempts_are_written_as_they_were(recorded: Path) -> None:
    of_attempts = [raw for _, _, raw, _ in _lines(recorded, "trial_runtime.wire:decode_word")]
    assert of_attempts
    assert [bytes(encode_fact(decode_fact(raw))) for raw in of_attempts] == of_attempts


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_orders_are_written_as_they_were(recorded: Path) -> None:
    """Up to the fields of then: an older agent leaves out what came behind them."""
    frames = [raw for _, _, raw, _ in _lines(recorded, "trial_runtime.wire:from_head")]
    assert frames
    for raw in frames:
        frame = wire.from_head(raw)
        orders = [wire.encode_order(order) for order in wire.decode_orders(frame, "here")]
        now = wire.frame(wire.HeadFrame(frame.epoch, orders, frame.orders, frame.life))
        assert now[:1] == raw[:1]
        assert _begins_with(msgspec.msgpack.decode(now[1:]), msgspec.msgpack.decode(raw[1:])), raw


def _begins_with(now: Any, was: Any) -> bool:
    """Whether an array of today begins with that of then, and so does each array within it."""
    if isinstance(now, list) and isinstance(was, list):
        return len(now) >= len(was) and all(map(_begins_with, now, was))
    return type(now) is type(was) and bool(now == was)


def test_an_array_that_begins_otherwise_is_noticed() -> None:
    assert _begins_with([1, ["s", "x", None]], [1, ["s", "x"]])
    assert not _begins_with([1, ["s"]], [1, ["s", "x"]])
    assert not _begins_with([1, ["s", "y"]], [1, ["s", "x"]])
    assert not _begins_with([1.0], [1])


def test_a_lost_field_is_found() -> None:
    was = {"type": "Start", "trial": 1, "holds": [1, {"a": 2}]}
    assert _missing(was, {**was, "new": 3}, "x") == []
    assert _missing(was, {"type": "Start", "trial": 1}, "x") == ["x.holds is gone"]
    assert _missing(was, {**was, "holds": [1, {"a": 3}]}, "x") == ["x.holds[1].a was 2 and is 3"]
