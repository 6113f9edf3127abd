"""Differences between the parameters of child and parent, in short: of a list only the entries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, Final

from dispatcher.queries.export import flatten

_MISSING: Final = object()

#: Longer lists are shown whole: entries are compared with one another.
_LONGEST = 200


def changed(child: dict[str, Any], parent: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters in which the child differs, both flat; None for those that it lacks.
    Paths are left out: they always differ."""
    unlike: dict[str, Any] = {}
    for key in [*parent, *(key for key in child if key not in parent)]:
        mine, theirs = child.get(key, _MISSING), parent.get(key, _MISSING)
        if mine != theirs and not key.endswith("_path"):
            unlike[key] = None if mine is _MISSING else mine
    return unlike


def in_words(unlike: dict[str, Any], parent: dict[str, Any]) -> tuple[str, ...]:
    """Describe what is :func:`changed`, each as in ``rate → 0.1``, ``blocks[3].kernel → 5``,
    ``blocks + {…}`` for an entry that came, or ``blocks - {…}`` for one that went."""
    phrases: list[str] = []
    for key, value in unlike.items():
        before = parent.get(key)
        if isinstance(value, list) and isinstance(before, list):
            phrases.extend(_entries(key, value, before))
        else:
            phrases.append(f"{key} → {_short(value)}")
    return tuple(phrases)


def _entries(key: str, child: list[Any], parent: list[Any]) -> Iterator[str]:
    if max(len(child), len(parent)) > _LONGEST:
        yield f"{key} → {_short(child)}"
        return
    before, now = (
        [json.dumps(entry, sort_keys=True) for entry in each] for each in (parent, child)
    )
    steps = SequenceMatcher(None, before, now, autojunk=False).get_opcodes()
    for kind, i, i_end, j, j_end in steps:
        if kind == "equal":
            continue
        both = min(i_end - i, j_end - j)
        for step in range(both):
            yield from _entry(f"{key}[{j + step}]", child[j + step], parent[i + step])
        yield from (f"{key} - {_short(entry)}" for entry in parent[i + both : i_end])
        yield from (f"{key} + {_short(entry)}" for entry in child[j + both : j_end])


def _entry(key: str, child: Any, parent: Any) -> Iterator[str]:
    if isinstance(child, dict) and isinstance(parent, dict):
        mine, theirs = flatten(child, f"{key}."), flatten(parent, f"{key}.")
        if mine.keys() == theirs.keys():
            yield from in_words(changed(mine, theirs), theirs)
            return
    yield f"{key} → {_short(child)}"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value)
