"""``docs/rest.md``, written from the routes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from dispatcher.operations.openapi import PREFIX
from dispatcher.operations.operation import Operation
from dispatcher.operations.table import OPERATIONS
from dispatcher.web.application import Application
from dispatcher.web.audit import AuditLog
from dispatcher.web.faults import REFUSALS
from dispatcher.web.keys import Keys
from dispatcher.web.route import WebRoute
from dispatcher.web.settings import WebSettings

_INTRODUCTION = f"""\
# REST reference

<!-- Generated from dispatcher/web and dispatcher/operations by `make docs`; edits are lost. -->

What `bequeath web` answers below `{PREFIX}`; [the page's guide](web.md) says how to begin. The same
as OpenAPI 3.1: `GET {PREFIX}/openapi.json`. Arguments and answers of operations:
[operations](operations.md). Scripts written for NNI find its REST at
[a port of its own](from-nni.md#nnis-rest).

Answers are JSON in UTF-8, compressed where the client takes gzip. Those to GET have an `ETag`, and
`If-None-Match` gets 304. Changes take an `Idempotency-Key`: the same request with the same key gets
the same answer for a day, as long as the server runs and it is among the newest 1,000 (8 MiB
together, answers of models apart). Changes of settings and pins take `If-Match`.
A change names the whole id of its experiment. Notes that belong to no answer are in the header
`Bequeath-Notes` (a JSON list).

An error is `{{"error": {{"kind", "message", "hint", "where", "exit_code", "errors"}}}}`. Beside the
kinds of [operations](operations.md#errors) there are these:

| kind | status | meaning |
|---|---|---|
"""


def reference_markdown(state: Path) -> str:
    """Return the text of ``docs/rest.md``.

    Args:
        state: a folder for the keys of a server that is made for this, and never serves.
    """
    application = Application(WebSettings(state=state), Keys(state), AuditLog(None))
    application.close()
    kinds = [f"| `{one.kind}` | {one.status} | {one.meaning} |\n" for one in REFUSALS.values()]
    rows = [_row(row) for row in OPERATIONS.values() if row.route]
    own = [_section(route) for route in application.own]
    return (
        _INTRODUCTION
        + "".join(kinds)
        + "\n## Operations\n\n| route | scope | operation |\n|---|---|---|\n"
        + "".join(rows)
        + "\n## For a page\n"
        + "".join(own)
    )


def _row(row: Operation[Any, Any]) -> str:
    anchor = row.name.replace(" ", "-")
    return f"| `{row.route}` | {row.scope.value} | [{row.name}](operations.md#{anchor}) |\n"


def _section(route: WebRoute) -> str:
    answer = route.answer and f"`{{{route.answer}}}`" if "," in route.answer else route.answer
    lines = [f"\n### {route.route}\n", f"{route.summary} Scope: `{route.scope.value}`."]
    if answer:
        lines.append(f"Answer: {answer}.")
    arguments = list(_arguments(route))
    if arguments:
        lines += ["\n| argument | | meaning |\n|---|---|---|", *arguments]
    return "\n".join(lines) + "\n"


def _arguments(route: WebRoute) -> Iterator[str]:
    schema = msgspec.json.schema(route.arguments)["$defs"][route.arguments.__name__]
    for name, one in schema["properties"].items():
        needed = "needed" if name in schema.get("required", ()) else ""
        text = re.sub(r"\s+", " ", one.get("description", "")).replace("|", "\\|")
        yield f"| `{name}` | {needed} | {text} |"
