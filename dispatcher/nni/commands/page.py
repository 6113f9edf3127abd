"""The verbs of ``nnictl`` as a table for ``docs/from-nni.md``, read off the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from typer.core import TyperCommand, TyperGroup

from dispatcher.cli.lazy_group import CommandEntry, load
from dispatcher.nni.commands.verbs import NNI

_HEAD = """\
## Command line

`bequeath nni` takes the commands of `nnictl`; each calls the function of a command of our own.
There is no `nnictl` of ours that could hide a real one: `alias nnictl='bequeath nni'` where none
is. Ids of experiments are ours (`NAME-xxxxxx`), ids of trials their numbers.

| NNI | here | options | |
|---|---|---|---|
"""

_TAIL = """\
| `nnictl --version` | same | `-v` | Print bequeath's version. |
| `python launch.py`, with `nni.experiment` | same | | `bequeath run launch.py` |
| REST | not | | `--json` of our commands, and `dispatcher.api` |
"""

#: The beginning of an option's help, if the option is not honoured.
MARKS = {"Refused": "refused", "Not needed": "not needed"}


def verbs_markdown() -> str:
    """Return the section of the page about the command line."""
    return _HEAD + "".join(_rows((), NNI)) + _TAIL


def _rows(path: tuple[str, ...], table: Mapping[str, CommandEntry]) -> Iterator[str]:
    for name, entry in table.items():
        command = load(name, entry)
        if isinstance(command, TyperGroup):
            yield from _rows((*path, name), command.table)  # type: ignore[attr-defined]
        else:
            yield _row(" ".join((*path, name)), command)


def _row(verb: str, command: TyperCommand) -> str:
    text = " ".join((command.help or "").split("\n\n")[0].split()).replace("|", "\\|")
    if text.startswith("Refused: "):
        return f"| `nnictl {verb}` | not | | {text.removeprefix('Refused: ')} |\n"
    return f"| `nnictl {verb}` | same | {_options(command.params)} | {text} |\n"


def _options(parameters: list[Any]) -> str:
    by_kind: dict[str, list[str]] = {"": [], **{word: [] for word in MARKS.values()}}
    for one in parameters:
        if one.param_type_name == "option" and one.name != "help":
            mark = next((word for text, word in MARKS.items() if one.help.startswith(text)), "")
            by_kind[mark].append(f"`{one.opts[0]}`")
    parts = [f"{kind}: {', '.join(names)}" if kind else ", ".join(names)
             for kind, names in by_kind.items() if names]  # fmt: skip
    return "; ".join(parts)
