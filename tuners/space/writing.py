"""A search space in NNI's JSON, whatever form it was written in.

What is NNI's JSON already stays as it is, to the last character; so does what belongs to a tuner's
own kind of space, or cannot be read.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from tuners.space.forms import Entry, branches
from tuners.space.model import (
    BLOCKS,
    CONSTRAINTS,
    Bell,
    BlockList,
    Branch,
    Choice,
    Dimension,
    RandInt,
    Range,
    Space,
)
from tuners.space.reading import is_sound
from tuners.space.short import is_short, read_short


def as_json(search_space: Any) -> Any:
    """Returns a search space as NNI's JSON: short forms, constructors' values and Spaces become it.

    Args:
        search_space: names and parameters in any form, or a Space. What is neither stays.
    """
    if isinstance(search_space, Space):
        return _rendered(search_space)
    if not isinstance(search_space, Mapping):
        return search_space
    return {name: one if name == CONSTRAINTS else _entry(one) for name, one in search_space.items()}


def rendered(dimension: Dimension) -> Entry:
    """Returns one parameter as NNI's JSON; integers with steps or logarithms as types of ours."""
    match dimension:
        case Choice(options=options):
            return {"_type": "choice", "_value": [_option(each) for each in options]}
        case RandInt(low=low, high=high, log=True):
            return {"_type": "lograndint", "_value": [low, high]}
        case RandInt(low=low, high=high, step=1):
            return {"_type": "randint", "_value": [low, high]}
        case RandInt(low=low, high=high, step=step):
            return {"_type": "qrandint", "_value": [low, high, step]}
        case Range(kind=kind, low=first, high=second, q=q):
            return {"_type": kind, "_value": [first, second] + ([] if q is None else [q])}
        case Bell(kind=bell, mu=first, sigma=second, q=q):
            return {"_type": bell, "_value": [first, second] + ([] if q is None else [q])}
        case BlockList(low=low, high=high, block=block):
            one = _rendered(block) if isinstance(block, Space) else rendered(block)
            return {"_type": BLOCKS, "_value": [low, high, one]}


def _rendered(space: Space) -> dict[str, Any]:
    entries: dict[str, Any] = {name: rendered(one) for name, one in space.dimensions}
    if space.constraints:
        entries[CONSTRAINTS] = [each.text for each in space.constraints]
    return entries


def _option(option: Any) -> Any:
    if isinstance(option, Branch):
        return {"_name": option.name, **_rendered(option.space)}
    return copy.deepcopy(option)


def _entry(one: Any) -> Any:
    """One parameter as JSON, if it can be read."""
    if isinstance(one, Dimension):
        return rendered(one)
    if isinstance(one, str):
        return _entry(read_short(one)) if is_short(one) and is_sound(one) else one
    if isinstance(one, Mapping) and one.get("_type") == BLOCKS:
        return _blocks(one)
    if isinstance(one, Mapping) and "_type" not in one:
        return as_json(one)  # a tuner's own kind, with parameters of ours somewhere below
    if not (isinstance(one, Mapping) and one.get("_type") == "choice"):
        return one
    options = one.get("_value")
    if isinstance(options, Mapping):
        if not is_sound(one):
            return one
        options = branches(options)
    if not isinstance(options, list | tuple):
        return one
    return {**one, "_value": [_below(each) for each in options]}


def _below(option: Any) -> Any:
    if isinstance(option, Mapping) and "_name" in option:
        return {name: one if name == "_name" else _entry(one) for name, one in option.items()}
    return option


def _blocks(one: Mapping[str, Any]) -> Any:
    value = one.get("_value")
    if not isinstance(value, list | tuple) or len(value) != 3:
        return one
    low, high, block = value
    if isinstance(block, Space) or (isinstance(block, Mapping) and "_type" not in block):
        return {**one, "_value": [low, high, as_json(block)]}
    return {**one, "_value": [low, high, _entry(block)]}
