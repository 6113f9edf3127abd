"""Where each trial of a lineage lies: generations in columns, children beside their parent.

Pure numbers. A tidy tree: leaves one row apart in the order in which they were born, each
parent at the middle of its children, subtrees never interleaved. The trials without parent
or child (most of a random search) are many and say little, so they are packed into a grid
of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from dispatcher.queries.lineage import Lineage


@dataclass(frozen=True, slots=True)
class Layout:
    """Places as (generation, row); rows count downwards. ``loners`` go into a grid apart."""

    places: dict[int, tuple[float, float]]
    rows: float
    columns: int
    loners: tuple[int, ...]


def lay_out(tree: Lineage) -> Layout:
    """Place all trials; linear in their number, and safe for any depth."""
    loners = tuple(root for root in tree.roots if not tree.nodes[root].children)
    families = [root for root in tree.roots if tree.nodes[root].children]
    rows: dict[int, float] = {}
    next_row = 0.0
    for family in families:
        for trial in _children_first(tree, family):
            children = tree.nodes[trial].children
            if children:
                rows[trial] = (rows[children[0]] + rows[children[-1]]) / 2
            else:
                rows[trial] = next_row
                next_row += 1.0
        next_row += 0.6  # air between families
    places = {trial: (float(tree.nodes[trial].generation), row) for trial, row in rows.items()}
    columns = 1 + max((tree.nodes[trial].generation for trial in rows), default=-1)
    return Layout(places, max(0.0, next_row - 0.6), columns, loners)


def _children_first(tree: Lineage, root: int) -> list[int]:
    order: list[int] = []
    stack = [root]
    while stack:
        trial = stack.pop()
        order.append(trial)
        stack.extend(tree.nodes[trial].children)
    order.reverse()  # children before parents, and the first-born before the last
    return order
