"""Pictures of an experiment as PNG files."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dispatcher.errors import UserError
from dispatcher.plots.kinds import KINDS, data_of
from dispatcher.plots.shapes import MOST_OBJECTIVES, Front, Hypervolume
from dispatcher.queries.lineages import NO_PARENT, inherits, lineage
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.running_best import progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What draws each kind.
_PAINTERS: Final = {
    "importance": "importance_picture:importance_figure",
    "slice": "slices_picture:slices_figure",
    "contour": "contour_picture:contour_figure",
    "parallel": "parallel_picture:parallel_figure",
    "pareto": "front_picture:front_figure",
    "hypervolume": "hypervolume_picture:hypervolume_figure",
    "timeline": "timeline_picture:timeline_figure",
    "slots": "slots_picture:slots_figure",
}


def draw(reader: ExperimentReader, kind: str, path: Path, choice: Mapping[str, Any]) -> None:
    """Draw a picture into a file.

    Args:
        reader: the experiment.
        kind: ``progress``, ``lineage``, or one of :data:`dispatcher.plots.kinds.KINDS`.
        path: the PNG file to write.
        choice: what of it; of the lineage ``root``: this trial and its descendants only.

    Raises:
        UserError: there is no such kind, parameter or number, a front has one objective, a library
            is missing, or the file cannot be written, or has the ending of another format.
        StoreError: the store cannot be read.
    """
    if kind not in ("progress", "lineage", *KINDS):
        text = f"there is no plot {kind!r}"
        raise UserError(text, hint=f"one of progress, lineage, {', '.join(KINDS)}")
    check_ending(path)
    _need_matplotlib()
    _save(_figure(reader, kind, choice), path)


def check_ending(path: Path) -> None:
    """Raise ``UserError`` for a file with the ending of another format."""
    if path.suffix.lower() not in ("", ".png"):
        hint = f"name it {path.with_suffix('.png').name}"
        raise UserError("pictures are PNG, and no other format", hint=hint, where=str(path))


def _figure(reader: ExperimentReader, kind: str, choice: Mapping[str, Any]) -> Figure:
    if kind == "progress":
        from dispatcher.plots.pictures.progress_picture import progress_figure

        return progress_figure(progress(reader), reader.name)
    if kind == "lineage":
        from dispatcher.plots.pictures.lineage_picture import lineage_figure, no_lineage_figure

        if not inherits(reader):  # seen at once, where a tree of all trials takes seconds
            some = reader.row("SELECT 1 FROM trials LIMIT 1") is not None
            why = f"nothing inherited: {NO_PARENT}" if some else "no trials yet"
            return no_lineage_figure(reader.name, why)
        return lineage_figure(lineage(reader, root=choice.get("root")), reader.name)
    module, _, name = _PAINTERS[kind].partition(":")
    paint = getattr(importlib.import_module(f"dispatcher.plots.pictures.{module}"), name)
    data = data_of(reader, kind, choice)
    if isinstance(data, Front | Hypervolume) and not data.objectives:
        raise UserError(
            f"a front is of 2 to {MOST_OBJECTIVES} objectives, and the experiment has one",
            hint="name several by --objective (in Python objectives=[...]), such as accuracy and "
            f"latency:minimize, or in the file (objectives:); {_numbers_of(data)}",
        )
    figure: Figure = paint(data)
    return figure


def _numbers_of(data: Front | Hypervolume) -> str:
    shown = ", ".join(data.metrics[:12])
    return f"results hold: {shown}" if shown else "there is no result yet"


def _need_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise UserError(
            "pictures need matplotlib, which is not installed",
            hint="pip install 'bequeath[plot]'",
        ) from error


def _save(figure: Figure, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure)
    facts: dict[str, Any] = {"Software": "bequeath"}
    try:
        for text in figure.findobj(Text):
            text.set_parse_math(False)  # a name with two dollars in it is no formula
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # an empty box
            figure.savefig(path, format="png", facecolor=figure.get_facecolor(), metadata=facts)
    except OSError as error:
        raise UserError(
            f"the picture cannot be written: {error.strerror or error}", where=str(path)
        ) from error
