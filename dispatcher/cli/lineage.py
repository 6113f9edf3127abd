"""``bequeath lineage``: the inheritance tree, as text or as a picture."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.terminal.console import is_terminal, note, print_json, say, styled
from dispatcher.terminal.safe_text import SafeText, safe_text

_COLOURS: dict[str, dict[str, object]] = {
    "branch": {"dim": True},
    "best": {"bold": True},
    "better": {"fg": "green"},
    "worse": {"fg": "yellow"},
    "bad": {"fg": "red"},
    "live": {"fg": "cyan"},
    "quiet": {"dim": True},
}


def lineage(
    experiment: Experiment = None,
    root: Annotated[
        int | None,
        typer.Option("--trial", metavar="TRIAL", help="Only this trial and its descendants."),
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Draw it into this file.")
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Show inheritance as a tree: each trial below its parent, with the parameters that it
    changed.

    ★ marks the best trial, ▲ and ▼ what a child gained or lost against its parent.
    """
    from dispatcher import queries
    from dispatcher.experiments.handle import ExperimentHandle

    handle = ExperimentHandle.find(experiment, folder)
    with handle.reading() as reader:
        tree = queries.lineage(reader, root=root)
        if png is not None:
            from dispatcher.queries.pictures import draw_lineage

            draw_lineage(reader, png, root=root)
            note(f"wrote {png}")
    if as_json:
        print_json({"experiment": handle.id, **tree.to_json()})
    elif png is None:
        terminal = is_terminal()
        width = shutil.get_terminal_size().columns if terminal else None
        paint = _painter(terminal)
        text = queries.lineage_text(tree, width=width, ascii_only=_ascii(), paint=paint)
        say(SafeText(text.rstrip("\n")))  # each part of it was painted


def _painter(terminal: bool) -> Callable[[str, str], str]:
    def paint(kind: str, text: str) -> str:
        text = safe_text(text)
        looks = _COLOURS.get(kind)
        return styled(text, **looks) if terminal and looks else text

    return paint


def _ascii() -> bool:
    """Whether the terminal or file shows nothing but ASCII."""
    return (sys.stdout.encoding or "ascii").lower().replace("-", "") in ("ascii", "ansix3.41968")
