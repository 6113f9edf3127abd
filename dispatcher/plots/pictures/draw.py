"""Pictures of an experiment as PNG files; one function for each kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dispatcher.errors import UserError
from dispatcher.queries.lineage import lineage
from dispatcher.queries.progress import progress
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.trials import TrialFilter, list_trials

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_progress(reader: ExperimentReader, path: Path) -> None:
    """Draw every result and the best so far, over time. Raises ``UserError``, as all here do."""
    _need_matplotlib()
    from dispatcher.plots.pictures.progress_picture import progress_figure

    _save(progress_figure(progress(reader), reader.name), path)


def draw_parallel(reader: ExperimentReader, path: Path) -> None:
    """Draw one line a trial through the axes of its parameters, coloured by value."""
    _need_matplotlib()
    from dispatcher.plots.pictures.parallel_picture import parallel_figure

    trials = list_trials(reader, TrialFilter(with_value=True))
    _save(parallel_figure(trials, reader.mode, reader.name), path)


def draw_lineage(reader: ExperimentReader, path: Path, *, root: int | None = None) -> None:
    """Draw the inheritance tree, generations from left to right, the path to the best highlighted.

    Args:
        reader: the experiment.
        path: the PNG file to write.
        root: draw this trial and its descendants only.
    """
    _need_matplotlib()
    from dispatcher.plots.pictures.lineage_picture import lineage_figure

    _save(lineage_figure(lineage(reader, root=root), reader.name), path)


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
        figure.savefig(path, format="png", facecolor=figure.get_facecolor(), metadata=facts)
    except OSError as error:
        raise UserError(
            f"the picture cannot be written: {error.strerror or error}", where=str(path)
        ) from error
