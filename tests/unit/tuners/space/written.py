"""Search spaces that hypothesis writes in three forms at once, and what lies inside them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tuners.space import parameters as bq
from tuners.space.model import Bell, BlockList, Branch, Choice, Dimension, RandInt, Range, Space


@dataclass(frozen=True)
class Forms:
    """One parameter three times: by a constructor, in short, in NNI's JSON."""

    python: Any
    short: str
    json: Any


_WHOLE = st.integers(-1000, 1000)
_NUMBERS = st.floats(-1e6, 1e6) | _WHOLE
_ABOVE_0 = st.floats(1e-6, 1e6) | st.integers(1, 1000)
_PLAIN = st.none() | st.booleans() | _NUMBERS | st.text(max_size=4)
_NAMES = st.text("abcdefg", min_size=1, max_size=3)


@st.composite
def _ranges(draw: st.DrawFn) -> Forms:
    kind = draw(st.sampled_from(["uniform", "quniform", "loguniform", "qloguniform"]))
    numbers = _ABOVE_0 if "log" in kind else _NUMBERS
    pair = st.lists(numbers, min_size=2, max_size=2, unique_by=float)
    return _call(kind, sorted(draw(pair)), draw(_ABOVE_0))


@st.composite
def _bells(draw: st.DrawFn) -> Forms:
    kind = draw(st.sampled_from(["normal", "qnormal", "lognormal", "qlognormal"]))
    return _call(kind, [draw(st.floats(-5, 5)), draw(st.floats(0.01, 3))], draw(_ABOVE_0))


def _call(kind: str, numbers: list[Any], q: Any) -> Forms:
    numbers = [*numbers, q] if kind.startswith("q") else numbers
    written = ", ".join(map(repr, numbers))
    made = getattr(bq, kind)(*numbers)
    return Forms(made, f"{kind}({written})", {"_type": kind, "_value": numbers})


@st.composite
def _integers(draw: st.DrawFn) -> Forms:
    low, more = draw(_WHOLE), draw(st.integers(0, 500))
    match draw(st.sampled_from(["plain", "step", "log"])):
        case "step":
            step = draw(st.integers(2, 50))
            last = low + more // step * step
            entry = {"_type": "qrandint", "_value": [low, last + 1, step]}
            if last == low:
                entry = {"_type": "randint", "_value": [low, low + 1]}
            short = f"int({low}, high={low + more}, step={step})"
            return Forms(bq.int(low, low + more, step), short, entry)
        case "log":
            low = abs(low) + 1
            entry = {"_type": "lograndint", "_value": [low, low + more + 1]}
            short = f"int({low}, {low + more}, log=true)"
            return Forms(bq.int(low, low + more, log=True), short, entry)
        case _:
            entry = {"_type": "randint", "_value": [low, low + more + 1]}
            return Forms(bq.int(low, low + more), f"int({low}, {low + more})", entry)


@st.composite
def _choices(draw: st.DrawFn) -> Forms:
    options = draw(st.lists(_PLAIN, min_size=1, max_size=4, unique_by=repr))
    written = ", ".join(map(repr, options))
    return Forms(bq.choice(options), f"choice({written})", {"_type": "choice", "_value": options})


def _nested(inner: st.SearchStrategy[Forms]) -> st.SearchStrategy[Forms]:
    below = st.dictionaries(_NAMES, inner, max_size=2)
    branches = st.dictionaries(_NAMES, below, min_size=1, max_size=3).map(_branches)
    bounds = st.tuples(st.integers(0, 3), st.integers(0, 2))
    spaces = st.dictionaries(_NAMES, inner, min_size=1, max_size=2).map(_space)
    return branches | st.builds(_blocks, bounds, inner | spaces)


def _branches(named: Mapping[str, Mapping[str, Forms]]) -> Forms:
    python = {
        name: {key: one.python for key, one in space.items()} for name, space in named.items()
    }
    shown = ", ".join(
        f"{name!r}: {{{', '.join(f'{key!r}: {one.short}' for key, one in space.items())}}}"
        for name, space in named.items()
    )
    options = [
        {"_name": name} | {key: one.json for key, one in space.items()}
        for name, space in named.items()
    ]
    return Forms(bq.choice(python), f"choice({{{shown}}})", {"_type": "choice", "_value": options})


def _space(named: Mapping[str, Forms]) -> Forms:
    return Forms(
        {name: one.python for name, one in named.items()},
        f"{{{', '.join(f'{name}: {one.short}' for name, one in named.items())}}}",
        {name: one.json for name, one in named.items()},
    )


def _blocks(bounds: tuple[int, int], block: Forms) -> Forms:
    low, high = bounds[0], max(1, sum(bounds))
    return Forms(
        bq.blocks(low, high, block.python),
        f"blocks({low}, high={high}, block={block.short})",
        {"_type": "blocks", "_value": [low, high, block.json]},
    )


PARAMETERS = st.recursive(_ranges() | _bells() | _integers() | _choices(), _nested, max_leaves=6)

SPACES = st.dictionaries(_NAMES, PARAMETERS, min_size=1, max_size=3)


def is_inside(space: Space, values: Mapping[str, Any]) -> bool:
    """Whether parameters are of a space, by its definition and by no code of ours."""
    names = {name for name, _ in space.dimensions}
    return names <= values.keys() and all(
        is_of(dimension, values[name]) for name, dimension in space.dimensions
    )


def is_of(dimension: Dimension, value: Any) -> bool:
    """Whether a value is one of a parameter's, by its definition and by no code of ours."""
    match dimension:
        case BlockList(low=low, high=high, block=block):
            many = type(value) is list and low <= len(value) <= high
            if isinstance(block, Space):
                return many and all(is_inside(block, one) for one in value)
            return many and all(is_of(block, one) for one in value)
        case Choice(options=options):
            for option in options:
                if isinstance(option, Branch):
                    if isinstance(value, Mapping) and value.get("_name") == option.name:
                        return is_inside(option.space, value)
                elif type(option) is type(value) and option == value:
                    return True
            return False
        case RandInt(low=low, high=high, step=step):
            return type(value) is int and value in range(low, high, step)
        case Range(low=low, high=high):
            return type(value) is float and low <= value <= high
        case Bell(kind=kind, q=q):
            whole = q is None or math.isclose(value / q, round(value / q), abs_tol=1e-6)
            return type(value) is float and whole and (value >= 0 or "log" not in kind)
