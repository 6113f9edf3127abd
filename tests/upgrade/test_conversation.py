"""What head, agent, tuner host and trials of an older release said is still understood.

``conversation-VERSION.jsonl`` was recorded where each process reads what came in: one message a
line, with the function that read it, its bytes, and what it was read as. The bytes must read
today as the same types with the same values; fields that were added since may be there, too.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import importlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

HERE = Path(__file__).parent
RECORDED = sorted(HERE.glob("conversation-*.jsonl"))


def _meaning(value: Any) -> Any:
    """As it was written down when it was recorded."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, msgspec.Raw):
        return {"raw": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, msgspec.Struct) or dataclasses.is_dataclass(value):
        names = getattr(value, "__struct_fields__", None) or [
            field.name
            for field in dataclasses.fields(value)  # type: ignore[arg-type]
        ]
        fields = {name: _meaning(getattr(value, name)) for name in names}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, list | tuple | set | frozenset):
        return [_meaning(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _meaning(one) for key, one in value.items()}
    return value


#: Names that are our own, since messages travel as arrays: what was recorded, and today's.
RENAMED = {"Published": "PublishedMessage", "words": "messages"}


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


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
def test_recorded_messages_mean_what_they_meant(recorded: Path) -> None:
    differing = []
    readers = set()
    for number, line in enumerate(recorded.read_text().splitlines(), start=1):
        message = json.loads(line)
        module, name = message["decoder"].split(":")
        read = getattr(importlib.import_module(module), name)
        now = _meaning(read(base64.b64decode(message["payload"])))
        differing += _missing(message["meaning"], now, f"line {number}, {name}")
        readers.add(name)
    assert differing == []
    assert len(readers) == 7, "every door was recorded"


def test_a_lost_field_is_found() -> None:
    was = {"type": "Start", "trial": 1, "holds": [1, {"a": 2}]}
    assert _missing(was, {**was, "new": 3}, "x") == []
    assert _missing(was, {"type": "Start", "trial": 1}, "x") == ["x.holds is gone"]
    assert _missing(was, {**was, "holds": [1, {"a": 3}]}, "x") == ["x.holds[1].a was 2 and is 3"]
