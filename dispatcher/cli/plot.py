"""``bequeath plot``: pictures of an experiment, as PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dispatcher.cli.arguments import Experiment, Folder, context_for
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.errors import UserError
from dispatcher.terminal.console import note

PLOT: Table = {
    "progress": CommandEntry("cli.plot:progress", "Every result, and the best so far, over time."),
    "parallel": CommandEntry("cli.plot:parallel", "Parameters against results, one line a trial."),
    "lineage": CommandEntry("cli.plot:lineage", "The inheritance tree."),
}

Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="The file; EXPERIMENT-KIND.png here if not given."
    ),
]


def progress(experiment: Experiment = None, out: Out = None, folder: Folder = None) -> None:
    """Draw every result, and the best so far, over time."""
    draw("progress", experiment, out, folder)


def parallel(experiment: Experiment = None, out: Out = None, folder: Folder = None) -> None:
    """Draw parameters against results: one line a trial, an axis a parameter."""
    draw("parallel", experiment, out, folder)


def lineage(experiment: Experiment = None, out: Out = None, folder: Folder = None) -> None:
    """Draw the inheritance tree, generations from left to right."""
    draw("lineage", experiment, out, folder)


def draw(
    kind: Literal["progress", "parallel", "lineage"],
    experiment: str | None,
    out: Path | None,
    folder: Path | None,
    *,
    root: int | None = None,
) -> None:
    """Draw one kind of picture of one experiment.

    Args:
        kind: ``progress``, ``parallel`` or ``lineage``.
        experiment: id, the beginning of one, a name or a folder; None: the one that runs, or
            the newest.
        out: the file to write; None: one named after experiment and kind.
        folder: the folder of experiments; None: the usual ones.
        root: of the lineage: this trial and its descendants only.

    Raises:
        UserError: matplotlib is missing, there is nothing to draw, or the file cannot be
            written.
    """
    from dispatcher.operations.arguments import DrawPicture
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import PLOT

    context = context_for("plot", folder)
    image = perform(PLOT, context, DrawPicture(kind=kind, root=root), experiment=experiment)
    path = out or Path(f"{context.handle(experiment, PLOT.purpose).id}-{kind}.png")
    try:
        path.write_bytes(image)
    except OSError as error:
        raise UserError(
            f"the picture cannot be written: {error.strerror}", where=str(path)
        ) from error
    note(f"wrote {path}")
