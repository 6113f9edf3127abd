"""The inheritance tree as text, in the manner of ``tree``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from dispatcher.queries.lineages import Lineage, LineageNode
from dispatcher.safe_text import safe_text
from dispatcher.text_width import columns_of

#: Gives a piece of text its looks: ``kind`` is ``branch``, ``best`` (on the path to the best
#: trial), ``value``, ``better``, ``worse``, ``bad``, ``live`` or ``quiet``.
Paint = Callable[[str, str], str]


class _Glyphs(NamedTuple):
    tee: str
    elbow: str
    bar: str
    star: str
    up: str
    down: str
    arrow: str
    dots: str


_UNICODE: Final = _Glyphs("├─ ", "└─ ", "│  ", "★", "▲", "▼", "→", "…")
_ASCII: Final = _Glyphs("|- ", "`- ", "|  ", "*", "+", "-", "->", "...")

#: Characters of branches before a trial where lines are not cut; on a terminal it is half of it.
_MOST_BRANCHES: Final = 120

_OUTCOME_TEXTS: Final = {"succeeded": "no result"}


def lineage_text(
    tree: Lineage,
    *,
    width: int | None = None,
    ascii_only: bool = False,
    paint: Paint | None = None,
) -> str:
    """Draw the forest, a line a trial, each below its parent.

    Of the branches before a trial of a late generation only the nearest are drawn, so that its
    number and value are always seen.

    Args:
        tree: what to draw.
        width: columns after which a line is cut; None never cuts.
        ascii_only: for terminals that show nothing else.
        paint: colours, if wanted; what it adds does not count as width.
    """
    glyphs = _ASCII if ascii_only else _UNICODE
    paint = paint or (lambda _kind, text: safe_text(text))
    room = _MOST_BRANCHES if width is None else max(6, width // 6 * 3)
    if not tree.nodes:
        return "no trials yet\n"
    on_path = frozenset(tree.best_path)
    lines: list[str] = []
    # Iterative, since a lineage may be thousands of generations deep.
    stack = [(trial, "", "", "") for trial in reversed(tree.roots)]
    while stack:
        trial, above, branch, below = stack.pop()
        node = tree.nodes[trial]
        branches = above + branch
        if 3 * node.generation > room:
            branches = f"{glyphs.dots}{branches[len(glyphs.dots) - room :]}"
        pieces = [("branch", branches), *_label(node, tree, glyphs, trial in on_path)]
        lines.append(_line(pieces, width, glyphs.dots, paint))
        last = len(node.children) - 1
        for place, child in reversed(list(enumerate(node.children))):
            turn, pass_by = (glyphs.elbow, "   ") if place == last else (glyphs.tee, glyphs.bar)
            stack.append((child, (above + below)[-room:], turn, pass_by))
    return "\n".join(lines) + "\n"


def _label(
    node: LineageNode, tree: Lineage, glyphs: _Glyphs, on_path: bool
) -> list[tuple[str, str]]:
    pieces = [("best" if on_path else "value", str(node.id))]
    if node.value is not None:
        pieces.append(("best" if on_path else "value", f"  {node.value:.5g}"))
        if node.id == tree.best:
            pieces.append(("best", f" {glyphs.star}"))
        if node.gain:
            up = node.gain > 0
            pieces.append(
                (
                    "better" if up else "worse",
                    f" {glyphs.up if up else glyphs.down}{abs(node.gain):.3g}",
                )
            )
        if node.outcome not in (None, "succeeded"):
            pieces.append(("bad", f"  {node.outcome}"))
    elif node.outcome is not None:
        word = _OUTCOME_TEXTS.get(node.outcome, node.outcome)
        pieces.append(("quiet" if node.outcome == "succeeded" else "bad", f"  {word}"))
    else:
        pieces.append(("live", f"  {node.state}"))
    if node.by_hand:
        pieces.append(("quiet", "  by hand"))
    if node.pretrained is not None:
        pieces.append(("quiet", f"  from {node.pretrained}"))
    if node.changes:
        changes = ", ".join(node.changes).replace("→", glyphs.arrow).replace("\t", " ")
        pieces.append(("quiet", f"  {changes}"))
    return pieces


def _line(pieces: list[tuple[str, str]], width: int | None, dots: str, paint: Paint) -> str:
    out: list[str] = []
    left = width if width is not None else 1 << 30
    total = sum(columns_of(text) for _, text in pieces)
    for kind, text in pieces:
        if total > left and columns_of(text) > left - len(dots):
            cut = text[: max(0, left - len(dots))]
            while cut and columns_of(cut) > left - len(dots):
                cut = cut[:-1]
            out.append(paint(kind, f"{cut}{dots}"[:left]))
            break
        out.append(paint(kind, text) if text else "")
        left -= columns_of(text)
        total -= columns_of(text)
    return "".join(out)
