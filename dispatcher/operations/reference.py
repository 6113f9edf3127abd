"""``docs/operations.md``, written from the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from dispatcher.operations.faults import FAULTS
from dispatcher.operations.operation import Operation
from dispatcher.operations.table import OPERATIONS

_INTRODUCTION = """\
# Operations

<!-- Generated from dispatcher/operations by `make docs`; edits here are lost. -->

What one can ask of experiments and do to them, for all ways in. The command line and Python carry
these out, and `bequeath web` serves their routes below `/api/v1` ([page](web.md), [REST](rest.md)).

```python
import bequeath as bq

experiment = bq.Experiment.open("digits")
experiment.perform("trial ls", where="lr<0.01 and optimizer=adam", sort="value", limit=5).trials
experiment.perform("weights gc", keep="best:3").bytes
```

An operation that is about a trial takes its number as `trial`. The attributes of an answer are the
keys of `--json` ([command line](cli.md)). Scopes: `read`, `logs` (reads what trials wrote),
`change`.

## Errors

Each error has a kind, a message, a hint (what to do), a place (`where`) and an exit code.

| kind | exit code | status of a route | meaning |
|---|---|---|---|
"""


def reference_markdown() -> str:
    """Return the text of ``docs/operations.md``."""
    kinds = [
        f"| `{one.kind}` | {one.exit_code} | {one.status} | {one.meaning} |\n"
        for one in FAULTS.values()
    ]
    return _INTRODUCTION + "".join(kinds) + "".join(map(_section, OPERATIONS.values()))


def _section(row: Operation[Any, Any]) -> str:
    commands = ", ".join(f"`bequeath {verb}`" for verb in row.verbs)
    route = f"`{row.route}`" if row.route else f"none: {row.why_not}"
    lines = [
        f"\n## {row.name}\n",
        f"{row.summary}\n",
        f"- scope: `{row.scope.value}`; about: {row.subject.value}",
        f"- command: {commands}",
        f"- Python: `{row.python}`",
        f"- route: {route}",
        f"- answer: {_answer(row)}",
    ]
    arguments = list(_arguments(row))
    if arguments:
        lines += ["\n| argument | | meaning |\n|---|---|---|", *arguments]
    return "\n".join(lines) + "\n"


def _answer(row: Operation[Any, Any]) -> str:
    if row.answer is bytes:
        return "a PNG"
    if row.answer is str:
        return "CSV"
    if not (isinstance(row.answer, type) and issubclass(row.answer, msgspec.Struct)):
        return "a list of objects"
    names = (field.encode_name for field in msgspec.structs.fields(row.answer))
    return f"`{{{', '.join(names)}}}`"


def _arguments(row: Operation[Any, Any]) -> Iterator[str]:
    schema = msgspec.json.schema(row.arguments)["$defs"][row.arguments.__name__]
    for name, one in schema["properties"].items():
        needed = "needed" if name in schema.get("required", ()) else ""
        text = re.sub(r"\s+", " ", one.get("description", "")).replace("|", "\\|")
        yield f"| `{name}` | {needed} | {text} |"
