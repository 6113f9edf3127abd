"""An experiment drawn into a file, which a notebook shows by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from dispatcher import queries
from dispatcher.errors import UserError

PlotKind = Literal["progress", "parallel", "lineage"]


class PlotFile:
    """A picture on disk, which a notebook shows by itself."""

    def __init__(self, path: Path) -> None:
        self.path = path  #: where the PNG file lies

    def __repr__(self) -> str:
        return f"<picture {self.path}>"

    def _repr_png_(self) -> bytes:
        return self.path.read_bytes()


def draw(folder: Path, kind: PlotKind, target: Path) -> PlotFile:
    """Draw the experiment of a folder into a PNG file.

    Args:
        folder: the experiment's.
        kind: of the picture.
        target: the PNG file to write.

    Raises:
        UserError: there is no such kind, matplotlib is missing, or the file cannot be written.
    """
    from dispatcher.queries import pictures

    painters = {
        "progress": pictures.draw_progress,
        "parallel": pictures.draw_parallel,
        "lineage": pictures.draw_lineage,
    }
    if kind not in painters:
        raise UserError(f"there is no plot {kind!r}", hint=f"one of {', '.join(painters)}")
    with queries.ExperimentReader.open(folder) as reader:
        painters[kind](reader, target)
    return PlotFile(target)
