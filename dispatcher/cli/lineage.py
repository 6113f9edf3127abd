"""``bequeath lineage``: the inheritance tree, as text or as a picture."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json, context_for
from dispatcher.safe_text import SafeText, safe_text
from dispatcher.terminal.console import is_terminal, print_json, say, styled

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
    from dispatcher.cli.plot import draw
    from dispatcher.operations.arguments import ChooseRoot
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import LINEAGE

    context = context_for("lineage", folder)
    answer = perform(LINEAGE, context, ChooseRoot(root=root), experiment=experiment)
    if png is not None:
        draw("lineage", experiment, png, folder, root=root)
    if as_json:
        print_json(answer)
    elif png is None:
        terminal = is_terminal()
        width = shutil.get_terminal_size().columns if terminal else None
        paint = _painter(terminal)
        tree = queries.Lineage(
            answer.mode, answer.nodes, answer.roots, answer.best, answer.best_path
        )
        text = queries.lineage_text(tree, width=width, ascii_only=shows_ascii_only(), paint=paint)
        say(SafeText(text.rstrip("\n")))  # each part of it was painted


def _painter(terminal: bool) -> Callable[[str, str], str]:
    def paint(kind: str, text: str) -> str:
        text = safe_text(text)
        looks = _COLOURS.get(kind)
        return styled(text, **looks) if terminal and looks else text

    return paint


def shows_ascii_only() -> bool:
    """Whether the terminal or file has no signs for branches, as those with nothing but ASCII."""
    try:
        "├─└│★▲▼→…".encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
