"""Names of parameters within others, joined by dots: a name that has a dot itself is in backticks.

Columns of an export are called so, and conditions read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

#: What stands between two backticks, where a backtick of the name itself is written twice.
QUOTED: Final = r"(?:[^`]|``)+"

#: Values as SQLite takes them.
Scalar = float | int | str | None

_PART: Final = re.compile(rf"(?:`({QUOTED})`|([^.]*))\.")
_STEP: Final = re.compile(rf"\[(\d+)\]|`({QUOTED})`|([^.\[\]`]+)")


def quoted_name(name: str) -> str:
    """Write one name so that dots around it are no part of it.

    >>> quoted_name("lr"), quoted_name("opt.lr"), quoted_name("a`b")
    ('lr', '`opt.lr`', '`a``b`')
    """
    return f"`{name.replace('`', '``')}`" if "." in name or "`" in name else name


def unquoted(text: str) -> str:
    """Return the name of which this stands between backticks."""
    return text.replace("``", "`")


def parts_of(joined: str) -> list[str]:
    """Split names that are joined by dots.

    >>> parts_of("block.`conv.kernel`.size")
    ['block', 'conv.kernel', 'size']
    """
    return [unquoted(quoted) if quoted else part for quoted, part in _PART.findall(f"{joined}.")]


class Sql(NamedTuple):
    """An expression of SQL, and the values of its question marks."""

    text: str
    values: tuple[Scalar, ...]


def steps_of(name: str) -> tuple[str, list[str | int]]:
    """Read a name of a condition: where it is looked up, and the keys and places on the way.

    >>> steps_of("metrics.loss"), steps_of("block[2].`conv.kernel`")
    (('metrics', ['loss']), ('parameters', ['block', 2, 'conv.kernel']))
    """
    steps: list[str | int] = [
        int(place) if place else unquoted(quoted) if quoted else key
        for place, quoted, key in _STEP.findall(name)
    ]
    if len(steps) > 1 and name.startswith(("parameters.", "metrics.")):
        return str(steps[0]), steps[1:]
    return "parameters", steps


def looked_up(column: str, steps: Sequence[str | int], *, alike: bool) -> Sql:
    """Return the expression for a value inside of a JSON text; what is no JSON has none.

    Args:
        column: that holds the text.
        steps: keys and places on the way.
        alike: dots may belong to a key, and a key that has them comes first.

    Raises:
        ValueError: SQLite cannot look a key up.
    """
    joined: list[str | int] = []
    for step in steps if alike else ():
        if joined and isinstance(step, str) and isinstance(joined[-1], str):
            joined[-1] += f".{step}"
        else:
            joined.append(step)
    ways = [joined, steps] if alike and len(joined) < len(steps) else [steps]
    paths = [path for way in ways for path in _paths(way)]
    found = ", ".join([f"json_extract({column}, ?)"] * len(paths))
    if len(paths) > 1:
        found = f"coalesce({found})"
    return Sql(f"CASE WHEN json_valid({column}) THEN {found} END", tuple(paths))


def _paths(steps: Sequence[str | int]) -> list[str]:
    """Return paths for SQLite, which before 3.45 compares keys as they are written in the text."""
    path = escaped = "$"
    for step in steps:
        if isinstance(step, int):
            path, escaped = f"{path}[{step}]", f"{escaped}[{step}]"
            continue
        if '"' in step or "\\" in step:
            raise ValueError("names with quotes or backslashes cannot be asked for")
        path, escaped = f'{path}."{step}"', f"{escaped}.{json.dumps(step)}"
    return list(dict.fromkeys((path, escaped)))
