"""Texts of a search space that are written as expressions, parsed by Python's own parser.

Nothing is executed: :mod:`tuners.space.short` and :mod:`tuners.space.constraints` each read the
nodes that they know.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from tuners.space.model import SpaceError

#: Values that YAML and JSON write otherwise than Python.
WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}


@contextmanager
def expression(text: str, most: int) -> Iterator[ast.expr]:
    """Give the expression that a text is; what the reading of it raises inside becomes its error.

    Args:
        text: the expression.
        most: characters that it may have.

    Raises:
        SpaceError: it is too long, nested too deeply, or has a value that cannot be read.
        SyntaxError: it is no expression.
    """
    if len(text) > most:
        raise SpaceError((), f"has {len(text):,} characters, {most:,} are the most")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            node = ast.parse(text.strip(), mode="eval").body
        yield node
    except (RecursionError, MemoryError):
        raise SpaceError((), "is nested too deeply to be read") from None
    except ValueError as error:
        if isinstance(error, SpaceError):
            raise
        raise SpaceError((), f"cannot be read: {error}") from None
