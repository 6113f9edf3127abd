"""The inheritance tree: generations from left to right, colour for value, the way to the best
in the accent colour."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from dispatcher.plots.pictures.lineage_layout import Layout, lay_out
from dispatcher.plots.pictures.looks import (
    ACCENT,
    BAD,
    FAINT,
    INK,
    PAPER,
    QUIET,
    ValueColours,
    colour_bar,
    empty,
    figure_of,
)
from dispatcher.queries.lineages import Lineage, LineageNode

# Inches; a tree of any size must come out as an image that opens.
_ROW: Final = 0.34
_COLUMN: Final = 1.15
_LONER_ROW: Final = 0.26
_LONER_COLUMN: Final = 1.05
_MARGIN: Final = (0.45, 0.85, 1.02, 0.3)  # left, right, top, bottom
_LARGEST: Final = (40.0, 60.0)
_NARROW: Final = 0.5  # a column of many generations
# Below these inches a row or a column, labels would overlap.
_LABEL_HEIGHT: Final = 0.17
_LABEL_WIDTH: Final = 0.85
# More generations than this have no bands: these would touch, and each takes a millisecond.
_MOST_BANDS: Final = 400


def lineage_figure(tree: Lineage, name: str) -> Figure:
    """Draw a lineage."""
    if len(tree.roots) == len(tree.nodes):
        return no_lineage_figure(name, "nothing inherited from this trial")
    layout = lay_out(tree)
    values = [node.value for node in tree.nodes.values() if node.value is not None]
    columns, rows = max(layout.columns, 1), layout.rows
    left, right, top, bottom = _MARGIN
    column = max(_NARROW, min(_COLUMN, 32.0 / columns))
    width = min(_LARGEST[0], max(8.0, left + right + (columns - 1) * column))
    loner_columns = max(1, int((width - left) / _LONER_COLUMN))
    loner_rows = math.ceil(len(layout.loners) / loner_columns)
    tree_height = rows * _ROW
    loner_height = loner_rows * _LONER_ROW + 0.45 if layout.loners else 0.0
    height = min(_LARGEST[1], max(2.2, top + bottom + tree_height + loner_height))
    figure = figure_of(width, height, name, _subtitle(tree))
    colours = ValueColours(values, tree.mode)
    if values:
        colour_bar(figure, colours, "value")

    inner = height - top - bottom
    share = tree_height / (tree_height + loner_height) if layout.loners else 1.0
    if layout.places:
        box = (left / width, (bottom + inner * (1 - share)) / height)
        axes = figure.add_axes((*box, 1 - (left + right) / width, inner * share / height))
        across = (width - left - right) / max(columns - 1, 1)
        _draw_tree(axes, tree, layout, colours, across, inner * share / max(rows, 1.0))
    if layout.loners:
        box = (left / width, bottom / height)
        axes = figure.add_axes((*box, 1 - (left + 0.2) / width, inner * (1 - share) / height))
        _draw_loners(axes, tree, layout, colours, loner_columns, loner_rows)
    return figure


def no_lineage_figure(name: str, why: str) -> Figure:
    """Draw that there is nothing to draw: a thousand dots without a line are no tree."""
    return empty(figure_of(7.0, 3.0, name, "lineage"), why)


def _subtitle(tree: Lineage) -> str:
    inherited = sum(node.inherited for node in tree.nodes.values())
    parts = [
        f"{len(tree.nodes):,} trials",
        f"{tree.generations} generation{'s' if tree.generations != 1 else ''}",
        f"{inherited:,} with inherited weights",
    ]
    if tree.best is not None:
        value = tree.nodes[tree.best].value
        parts.append(f"best {value:.5g} (trial {tree.best})")
    return "  ·  ".join(parts)


def _draw_tree(
    axes: Axes,
    tree: Lineage,
    layout: Layout,
    colours: ValueColours,
    column_inches: float,
    row_inches: float,
) -> None:
    margin = 0.16 / column_inches  # so that no dot is cut
    axes.set_xlim(-margin, max(layout.columns - 1, 1) + margin)
    axes.set_ylim(layout.rows - 0.5, -0.9)
    axes.set_facecolor(PAPER)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_yticks([])
    _name_generations(axes, layout)

    on_path = set(pairwise(tree.best_path))
    inherited, others, best = [], [], []
    for trial, place in layout.places.items():
        parent = tree.nodes[trial].parent
        if parent is None:
            continue
        curve = _bend(layout.places[parent], place)
        if (parent, trial) in on_path:
            best.append(curve)
        elif tree.nodes[trial].inherited:
            inherited.append(curve)
        else:
            others.append(curve)
    thin = 1.0 if row_inches > _LABEL_HEIGHT else 0.55
    axes.add_collection(
        LineCollection(others, colors=FAINT, linewidths=thin, linestyles="dashed", zorder=1)
    )
    axes.add_collection(LineCollection(inherited, colors="#c3cad3", linewidths=thin, zorder=1))
    axes.add_collection(
        LineCollection(best, colors=ACCENT, linewidths=2.6, zorder=2, capstyle="round")
    )
    size = max(9.0, min(95.0, (row_inches * 72 * 0.62) ** 2))
    _dots(axes, tree, layout.places, colours, size)
    if row_inches > _LABEL_HEIGHT and column_inches >= _NARROW * 0.9:
        named = list(layout.places)
    else:
        named = [tree.best] if tree.best in layout.places else []
    brief = column_inches < _LABEL_WIDTH
    for trial in named:
        _name(axes, tree, tree.nodes[trial], layout.places[trial], math.sqrt(size), brief=brief)


def _name_generations(axes: Axes, layout: Layout) -> None:
    step = max(1, math.ceil(layout.columns / 40))
    axes.set_xticks(range(0, layout.columns, step))
    axes.xaxis.tick_top()
    axes.set_xticklabels(
        ["generation 0" if i == 0 else f"{i}" for i in range(0, layout.columns, step)]
    )
    axes.tick_params(length=0, labelsize=8, labelcolor=QUIET, pad=1)
    for column in range(layout.columns if layout.columns <= _MOST_BANDS else 0):
        axes.axvline(column, color="#f0f1ee", linewidth=7, zorder=0)


def _bend(start: tuple[float, float], end: tuple[float, float]) -> list[tuple[float, float]]:
    """Out of the parent level, into the child level."""
    (x0, y0), (x1, y1) = start, end
    path = []
    for step in range(25):
        t = step / 24
        path.append((x0 + (x1 - x0) * t, y0 + (y1 - y0) * t * t * (3 - 2 * t)))
    return path


def _dots(
    axes: Axes,
    tree: Lineage,
    places: dict[int, tuple[float, float]],
    colours: ValueColours,
    size: float,
) -> None:
    """Full for a value, a cross for a failure, hollow for what is under way."""
    on_path = set(tree.best_path)
    groups: dict[str, list[int]] = {"value": [], "path": [], "bad": [], "live": []}
    for trial in places:
        node = tree.nodes[trial]
        if node.value is not None:
            groups["path" if trial in on_path else "value"].append(trial)
        else:
            groups["bad" if node.outcome is not None else "live"].append(trial)

    def scatter(kind: str, **looks: Any) -> None:
        chosen = groups[kind]
        if chosen:
            xs, ys = zip(*(places[trial] for trial in chosen), strict=True)
            axes.scatter(xs, ys, **looks)

    def fill(kind: str) -> list[Any]:
        return [colours(tree.nodes[t].value or 0.0) for t in groups[kind]]

    rim = max(0.4, math.sqrt(size) / 9)
    scatter("value", s=size, c=fill("value"), edgecolors=PAPER, linewidths=rim, zorder=3)
    scatter(
        "path", s=size * 1.45, c=fill("path"), edgecolors=ACCENT, linewidths=rim * 1.9, zorder=4
    )
    scatter("bad", s=size * 0.45, marker="x", color=BAD, linewidths=rim * 1.3, zorder=3)
    scatter("live", s=size * 0.8, facecolors=PAPER, edgecolors=QUIET, linewidths=rim, zorder=3)
    if tree.best in places:
        x, y = places[tree.best]
        axes.scatter([x], [y], s=size * 0.5, marker="*", color=PAPER, linewidths=0, zorder=5)


def _name(
    axes: Axes,
    tree: Lineage,
    node: LineageNode,
    place: tuple[float, float],
    dot: float,
    *,
    beside: bool = False,
    brief: bool = False,
) -> None:
    """The trial's number and value: above its dot and clear of the lines that leave it, or
    ``beside`` the dot where no line does."""
    best = node.id == tree.best
    beside = beside or (best and not node.children)
    short = node.value is None or (brief and not best)
    text = f"{node.id}" if short else f"{node.id}  {node.value:.4g}"
    axes.annotate(
        text,
        place,
        xytext=(dot * 0.72 + 3, 0)
        if beside
        else (dot * 0.4, dot * (0.55 if node.id in tree.best_path else 0.42) + 1.2),
        textcoords="offset points",
        va="center" if beside else "bottom",
        size=8.4 if best else 6.6,
        color=ACCENT if node.id in tree.best_path else (INK if node.value is not None else QUIET),
        weight="bold" if best else "normal",
        zorder=6,
        annotation_clip=False,
        path_effects=[withStroke(linewidth=1.8, foreground=PAPER)],
    )


def _draw_loners(
    axes: Axes, tree: Lineage, layout: Layout, colours: ValueColours, columns: int, rows: int
) -> None:
    axes.axis("off")
    axes.set_xlim(-0.12, columns - 0.12)
    axes.set_ylim(max(rows, 1) - 0.4, -1.5)
    axes.text(
        -0.07, -1.0, f"{len(layout.loners):,} trials without parent or child",
        size=8, color=QUIET, va="center",
    )  # fmt: skip
    places = {
        trial: (float(i % columns), float(i // columns)) for i, trial in enumerate(layout.loners)
    }
    _dots(axes, tree, places, colours, 55.0 if rows <= 200 else 12.0)
    if rows <= 60:
        for trial, place in places.items():
            _name(axes, tree, tree.nodes[trial], place, 7.4, beside=True)
