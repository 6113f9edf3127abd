"""The layout of a lineage: generations in columns, children beside their parent.

Pure numbers. A tidy tree, after Reingold and Tilford (1981): subtrees are pushed together until
their outlines touch, never interleaved, so no line crosses another; a parent lies at the middle
of its children. The path to the best trial is a straight trunk, its branches are laid above and
below in turn. The trials without parent or child (most of a random search) are many
and say little: they are left out here and packed into a grid of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dispatcher.queries.lineages import Lineage

# Rows between neighbours in a column, and between families.
_GAP = 1.0
_FAMILY_GAP = 1.5


@dataclass(frozen=True, slots=True)
class Layout:
    """Places as (generation, row); rows count downwards from 0. ``loners`` go elsewhere."""

    places: dict[int, tuple[float, float]]
    rows: float
    columns: int
    loners: tuple[int, ...]


@dataclass(slots=True)
class _Outline:
    """The highest and lowest row of a subtree in each column, all moved by ``base``."""

    spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    base: float = 0.0

    def below(self, other: _Outline, gap: float) -> float:
        """Return how far ``other`` must move to lie below this one."""
        return (
            max((self._depth(other, column) for column in self._common(other)), default=-gap) + gap
        )

    def above(self, other: _Outline, gap: float) -> float:
        """Return how far ``other`` must move (a negative number) to lie above this one."""
        return -other.below(self, gap)

    def joined(self, other: _Outline, moved: float) -> _Outline:
        """Merge both into one, ``other`` moved. Copies the smaller into the larger."""
        other.base += moved
        large, small = (self, other) if len(self.spans) >= len(other.spans) else (other, self)
        shift = small.base - large.base
        for column, (low, high) in small.spans.items():
            low, high = low + shift, high + shift
            span = large.spans.get(column)
            if span is not None:
                low, high = min(low, span[0]), max(high, span[1])
            large.spans[column] = (low, high)
        return large

    def _common(self, other: _Outline) -> list[int]:
        few, many = sorted((self.spans, other.spans), key=len)
        return [column for column in few if column in many]

    def _depth(self, other: _Outline, column: int) -> float:
        return self.spans[column][1] + self.base - other.spans[column][0] - other.base


def lay_out(tree: Lineage) -> Layout:
    """Place all trials; about linear in their number, and safe for any depth."""
    loners = tuple(root for root in tree.roots if not tree.nodes[root].children)
    families = [root for root in tree.roots if tree.nodes[root].children]
    moves: dict[int, float] = {}  # of each trial from its parent
    forest = _Outline()
    for family in families:
        outline = _lay_out_family(tree, family, moves)
        moves[family] = forest.below(outline, _FAMILY_GAP) if forest.spans else 0.0
        forest = forest.joined(outline, moves[family])
    places: dict[int, tuple[float, float]] = {}
    top = min((low for low, _ in forest.spans.values()), default=0.0) + forest.base
    bottom = max((high for _, high in forest.spans.values()), default=0.0) + forest.base
    for family in families:
        for trial in reversed(_children_first(tree, family)):
            node = tree.nodes[trial]
            above = -top if trial == family or node.parent is None else places[node.parent][1]
            places[trial] = (float(node.generation), above + moves[trial])
    columns = 1 + max((tree.nodes[trial].generation for trial in places), default=-1)
    return Layout(places, bottom - top + 1 if places else 0.0, columns, loners)


def _lay_out_family(tree: Lineage, root: int, moves: dict[int, float]) -> _Outline:
    trunk = frozenset(tree.best_path)
    outlines: dict[int, _Outline] = {}
    upwards = False
    for trial in _children_first(tree, root):
        node = tree.nodes[trial]
        leading = next((child for child in node.children if child in trunk), None)
        outline = _Outline()
        if leading is not None:
            outline = outlines.pop(leading)
            moves[leading] = 0.0
            for child in node.children:
                if child == leading:
                    continue
                branch = outlines.pop(child)
                upwards = not upwards
                place = outline.above if upwards else outline.below
                moves[child] = place(branch, _GAP)
                outline = outline.joined(branch, moves[child])
        elif node.children:
            for child in node.children:
                branch = outlines.pop(child)
                moves[child] = outline.below(branch, _GAP) if outline.spans else 0.0
                outline = outline.joined(branch, moves[child])
            middle = (moves[node.children[0]] + moves[node.children[-1]]) / 2
            for child in node.children:
                moves[child] -= middle
            outline.base -= middle
        outline.spans[node.generation] = (-outline.base, -outline.base)
        outlines[trial] = outline
    return outlines[root]


def _children_first(tree: Lineage, root: int) -> list[int]:
    order: list[int] = []
    stack = [root]
    while stack:
        trial = stack.pop()
        order.append(trial)
        stack.extend(tree.nodes[trial].children)
    order.reverse()
    return order
