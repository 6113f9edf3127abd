"""``python -m dispatcher.cli.reference``: ``docs/cli.md``, written from the commands themselves."""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from typer.core import TyperCommand, TyperGroup

from dispatcher.cli.commands import ROOT
from dispatcher.cli.exit_codes import MEANINGS
from dispatcher.cli.json_shapes import EXPERIMENT_KEYS, SHAPES, TRIAL_KEYS
from dispatcher.cli.lazy_group import Table, load
from dispatcher.cli.main import PROGRAM

_INTRODUCTION = """\
# Command line reference

<!-- Generated from dispatcher/cli by `make docs`; edits here are lost. -->

Answers go to stdout; progress, notes and errors go to stderr, so that a pipe gets answers only.
An error is one line `where: what is wrong` and, below it, what to do about it; a traceback is
shown for faults of bequeath itself only. `bequeath COMMAND --help` says more of each command.

- **Which experiment.** `EXPERIMENT` is an id, the beginning of one, a name, or a folder. It may be
  left out when one experiment runs. When none runs, commands that only look take the newest, and
  `resume` the newest that is not over. An empty name is an error.
- **Where experiments are.** In the file's `experimentWorkingDirectory`, else in the folder that
  the variable `BEQUEATH_HOME` names, else in `~/bequeath-experiments`. They are looked for in
  the latter two and in every folder used before; with `--folder` in that one only. Where
  `BEQUEATH_HOME` is set, experiments in other folders are used only if they are named, and of
  two with one name the one there is meant.
- **`--json`** prints one JSON document instead of text. Its shape is stable: keys may be added,
  none is removed or changes its meaning. Times are seconds since 1970 (UTC), durations seconds,
  sizes bytes; errors stay on stderr.
- **Colours** appear on terminals only, and not where `NO_COLOR` is set or `TERM` is `dumb`. What
  trials have printed is made harmless: escape sequences are shown and not sent.
- **Completion** of commands and experiment ids: `bequeath --install-completion`, or
  `source <(bequeath completion bash)`.
- **Signals.** In `run` and `resume`, Ctrl-C once lets running trials finish and starts no new
  ones, twice stops them at once, a third time leaves without waiting. SIGTERM and a closed
  terminal stop at once. `bequeath resume` goes on after each of them.
"""


#: What so many commands take is described once, at the top.
_MANY = 20


class _Row(NamedTuple):
    """An argument or option: how it is written, and what it does."""

    name: str
    meaning: str


_Page = list[tuple[str, tuple[str, ...], TyperCommand | TyperGroup]]


def reference_markdown() -> str:
    """Return the text of ``docs/cli.md``."""
    page: _Page = [
        (entry.panel, path, command)
        for name, entry in ROOT.items()
        for path, command in _commands((name,), load(name, entry))
    ]
    rows = {path: _rows(command) for _, path, command in page}
    counts = Counter(row for each in rows.values() for row in each)
    shared = [row for row, count in counts.items() if count >= _MANY]
    parts = [_INTRODUCTION, _taken_by_many(shared), _keys(), _exit_codes()]
    last = ""
    for panel, path, command in page:
        if panel != last:
            parts.append(f"## {panel}\n")
            last = panel
        parts.append(_command(path, command, rows[path], shared))
    return "\n".join(parts)


def _commands(
    path: tuple[str, ...], command: TyperCommand | TyperGroup
) -> Iterator[tuple[tuple[str, ...], TyperCommand | TyperGroup]]:
    table: Table | None = getattr(command, "table", None)
    if table is None:
        yield path, command
        return
    for name, entry in table.items():
        yield from _commands((*path, name), load(name, entry))


def _taken_by_many(shared: list[_Row]) -> str:
    return "## What many commands take\n\n" + "".join(map(_line, shared))


def _keys() -> str:
    return (
        "## Answers as JSON\n\n"
        f"- A trial holds {TRIAL_KEYS}.\n"
        f"- An experiment holds {EXPERIMENT_KEYS}.\n"
    )


def _exit_codes() -> str:
    rows = [f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "## Exit codes\n\n| code | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"


def _command(
    path: tuple[str, ...],
    command: TyperCommand | TyperGroup,
    rows: list[_Row],
    shared: list[_Row],
) -> str:
    """Show a command in a paragraph and a line for each option; ``--help`` has the rest."""
    taken = [f"`{row.name}`" for row in rows if row in shared and row.name != "--json"]
    takes = f" Takes {', '.join(taken)}." if taken else ""
    text = f"### `{PROGRAM} {' '.join(path)}`\n\n{_summary(command.help or '')}{takes}\n"
    lines = [_line(row) for row in rows if row not in shared]
    shape = SHAPES.get(" ".join(path))
    if shape is not None:
        lines.append(f"- `--json`: {_with_links(shape)}\n")
    return text + ("\n" + "".join(lines) if lines else "")


def _summary(text: str) -> str:
    """Unwrap a docstring's first paragraph, since Markdown wraps by itself."""
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def _with_links(shape: str) -> str:
    keys = "[these keys](#answers-as-json)"
    return shape.replace(TRIAL_KEYS, keys).replace(EXPERIMENT_KEYS, keys)


def _line(row: _Row) -> str:
    return f"- `{row.name}`: {row.meaning}\n"


def _rows(command: TyperCommand | TyperGroup) -> list[_Row]:
    return [_row(each) for each in command.params if each.name != "help"]


def _row(parameter: Any) -> _Row:
    text = parameter.help or ""
    if parameter.param_type_name == "argument":
        name = (parameter.metavar or parameter.name).strip("[]")
        return _Row(name, _unwrapped(text))
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    metavar = "" if parameter.is_flag else f" {parameter.metavar}"
    if parameter.envvar:
        text += f" Also by the variable `{parameter.envvar}`."
    return _Row(f"{names}{metavar}", _unwrapped(text + _default(parameter)))


def _default(parameter: Any) -> str:
    default = parameter.default
    if default in (None, False, True, "") or callable(default) or parameter.is_flag:
        return ""
    shown = getattr(default, "value", default)
    return f" Default: {shown}."


def _unwrapped(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def main() -> None:
    """Print the reference."""
    sys.stdout.write(reference_markdown())


if __name__ == "__main__":
    main()
