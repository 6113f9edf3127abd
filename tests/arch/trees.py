"""The modules of the product as syntax trees, each read once for all rules of this folder.

A rule walks all of it; to read them costs ten times as much as to look at them. Nobody
changes a tree.
"""

from __future__ import annotations

import ast
import gc
from functools import cache


@cache
def tree_of(text: str) -> ast.Module:
    """The syntax tree of a module of the product."""
    # Python's collector walks all trees again for each few that are added: four times the work.
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


@cache
def nodes_of(text: str) -> tuple[ast.AST, ...]:
    """All nodes of a module of the product, as ``ast.walk`` has them."""
    return tuple(ast.walk(tree_of(text)))
