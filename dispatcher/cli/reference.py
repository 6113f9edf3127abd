"""``python -m dispatcher.cli.reference``: ``docs/cli.md``, written from the commands themselves."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

from typer.core import TyperCommand, TyperGroup

from dispatcher.cli.commands import ROOT
from dispatcher.cli.exit_codes import MEANINGS
from dispatcher.cli.json_shapes import SHAPES
from dispatcher.cli.lazy_group import Table, load
from dispatcher.cli.main import PROGRAM, root

_INTRODUCTION = """\
# Command line reference

<!-- Generated from dispatcher/cli by `make docs`; edits here are lost. -->

Answers go to stdout; progress, notes and errors go to stderr, so that a pipe gets answers only.
An error is one line `where: what is wrong` and, below it, what to do about it; a traceback is
shown for faults of bequeath itself only.

- **Which experiment.** `EXPERIMENT` is an id, the beginning of one, a name, or a folder. It may be
  left out when one experiment runs. When none runs, commands that only look take the newest, and
  `resume` the newest that is not over. An empty name is an error.
- **Where experiments are.** In the file's `experimentWorkingDirectory`, else in the folder that
  the variable `BEQUEATH_HOME` names, else in `~/bequeath-experiments`. They are looked for in
  the latter two and in every folder used before; with `--folder` in that one only. Where
  `BEQUEATH_HOME` is set, experiments in other folders are used only if they are named.
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


def reference_markdown() -> str:
    """Return the text of ``docs/cli.md``."""
    parts = [_INTRODUCTION, _exit_codes()]
    panel = ""
    for name, entry in ROOT.items():
        if entry.panel != panel:
            panel = entry.panel
            parts.append(f"## {panel}\n")
        parts.extend(_command((name,), load(name, entry)))
    return "\n".join(parts)


def _exit_codes() -> str:
    rows = [f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "## Exit codes\n\n| code | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"


def _command(path: tuple[str, ...], command: TyperCommand | TyperGroup) -> Iterator[str]:
    table: Table | None = getattr(command, "table", None)
    if table is not None:
        for name, entry in table.items():
            yield from _command((*path, name), load(name, entry))
        return
    context = root().make_context(PROGRAM, [], resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"### `{PROGRAM} {' '.join(path)}`\n"
    yield f"```\n{PROGRAM} {' '.join(path)} {usage}\n```\n"
    yield f"{_prose(command.help or '')}\n"
    rows = [_row(parameter, context) for parameter in command.params]
    rows = [row for row in rows if row]
    if rows:
        yield "| | |\n|---|---|\n" + "\n".join(rows) + "\n"
    shape = SHAPES.get(" ".join(path))
    if shape is not None:
        yield f"`--json`: {shape}\n"


def _prose(text: str) -> str:
    """Unwrap a docstring's paragraphs, since Markdown wraps by itself."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _row(parameter: Any, context: Any) -> str:
    if parameter.name == "help":
        return ""
    if parameter.param_type_name == "argument":
        name = (parameter.metavar or parameter.name).strip("[]")
        text = parameter.help or ""
        return f"| `{name}` | {_cell(text)} |"
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    metavar = "" if parameter.is_flag else f" {parameter.metavar}"
    text = parameter.help or ""
    if parameter.envvar:
        text += f" Also by the variable `{parameter.envvar}`."
    default = _default(parameter)
    return f"| `{names}{metavar}` | {_cell(text + default)} |"


def _default(parameter: Any) -> str:
    default = parameter.default
    if default in (None, False, True) or callable(default) or parameter.is_flag:
        return ""
    shown = getattr(default, "value", default)
    return f" Default: {shown}."


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def main() -> None:
    """Print the reference."""
    sys.stdout.write(reference_markdown())


if __name__ == "__main__":
    main()
