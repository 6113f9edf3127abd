"""The hypervolume of the front as a step line, over the time since the start."""

from __future__ import annotations

from matplotlib.figure import Figure

from dispatcher.plots.pictures.looks import ACCENT, INK, PAPER, empty, figure_of, plain_axes, shown
from dispatcher.plots.pictures.progress_picture import UNITS
from dispatcher.plots.pictures.scales import add_notes
from dispatcher.plots.shapes import Hypervolume


def hypervolume_figure(data: Hypervolume) -> Figure:
    """Draw how the hypervolume grew."""
    zero = ", ".join(
        f"{shown(one.name, 20)} {at:.4g}"
        for one, at in zip(data.objectives, data.reference, strict=True)
    )
    subtitle = f"hypervolume of the front above {zero}" if zero else "hypervolume of the front"
    figure = figure_of(8.4, 4.8, shown(data.title, 60), shown(subtitle, 110))
    add_notes(figure, data.notes)
    if not data.trials:
        return empty(figure, "no trial is better than the reference in several objectives")
    end = data.elapsed_s[-1]
    scale, unit = next(((s, u) for s, u in UNITS if end >= 2 * s), UNITS[-1])
    times = [one / scale for one in data.elapsed_s]
    axes = figure.add_axes((0.095, 0.155, 0.855, 0.66))
    plain_axes(axes)
    axes.step([0.0, *times], [0.0, *data.volumes], where="post", color=ACCENT, linewidth=1.8)
    axes.scatter(times, data.volumes, s=20, color=ACCENT, edgecolors=PAPER, linewidths=0.8)
    axes.annotate(
        f"{data.volumes[-1]:.5g} · trial {data.trials[-1]}, result {data.counts[-1]:,}"
        f" of {data.results:,}",
        (times[-1], data.volumes[-1]), xytext=(-6, 8), textcoords="offset points", ha="right",
        va="bottom", size=9, color=ACCENT, weight="bold",
    )  # fmt: skip
    axes.set_xlim(0, max(times[-1] * 1.02, 1e-9))
    axes.set_ylim(0, max(data.volumes[-1] * 1.15, 1e-300))
    axes.set_xlabel(f"{unit} since the start", size=9, color=INK)
    axes.set_ylabel("hypervolume", size=9, color=INK)
    return figure
