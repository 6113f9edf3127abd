"""The inheritance of weights: the trials as a forest, with the path to the best of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from dispatcher.queries.export import flatten
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import OptimizeMode, Record, json_value
from dispatcher.queries.trials import TrialNotFound

_MISSING: Final = object()

#: Longer lists are shown whole: entries are compared with one another.
_LONGEST_LIST = 200


#: Said where there is no tree to show.
NO_PARENT: Final = "no trial has a parent"


@dataclass(frozen=True, slots=True)
class LineageNode(Record):
    """One trial in the tree. ``generation`` counts from 0, the trials without a parent."""

    id: int
    parent: int | None
    children: tuple[int, ...]
    generation: int
    state: str
    outcome: str | None
    value: float | None
    gain: float | None  # over the parent; positive is better, whichever way is up
    inherited: bool  # it was started with its parent's weights
    pretrained: str | None  # the restore path outside the weights root, if it has one
    has_weights: bool
    by_hand: bool
    changed: dict[str, Any]  # parameters unlike the parent's, flat
    changes: tuple[str, ...] = ()  # the same as texts; of lists only the entries


@dataclass(frozen=True, slots=True, repr=False)
class Lineage(Record):
    """The forest. ``nodes`` are in the order of their ids; a parent's may be above its child's."""

    mode: OptimizeMode
    nodes: dict[int, LineageNode]
    roots: tuple[int, ...]
    best: int | None
    best_path: tuple[int, ...]  # from a root to the best trial

    def __repr__(self) -> str:
        """Short, for notebooks; the tree by ``lineage_text``."""
        best = "" if self.best is None else f", best {self.best}"
        return (
            f"<Lineage of {len(self.nodes)} trials in {self.generations} generations, "
            f"{len(self.roots)} without a parent{best}>"
        )

    @property
    def generations(self) -> int:
        """The number of generations."""
        return 1 + max((node.generation for node in self.nodes.values()), default=-1)

    def walk(self) -> Iterator[LineageNode]:
        """Yield each node before its children, siblings by id."""
        stack = list(reversed(self.roots))
        while stack:
            node = self.nodes[stack.pop()]
            yield node
            stack.extend(reversed(node.children))


def inherits(reader: ExperimentReader) -> bool:
    """Whether any trial has a parent."""
    return reader.row("SELECT 1 FROM trials WHERE parent IS NOT NULL LIMIT 1") is not None


def lineage(
    reader: ExperimentReader, *, root: int | None = None, mode: OptimizeMode | None = None
) -> Lineage:
    """Build the inheritance tree of all trials, or of one trial and its descendants.

    Requests that never became trials are left out. Takes about 10 µs a trial.

    Args:
        reader: the experiment.
        root: the only root; None takes all trials without a parent.
        mode: which values are best; None: as the experiment says.

    Raises:
        TrialNotFound: there is no trial ``root``.
    """
    mode = mode or reader.mode
    rows = reader.rows(
        "SELECT id, parent, state, outcome, number, told, restore_path, weights_digest, attempt, "
        "by_hand, parameters FROM trials "
        "WHERE outcome IS NOT 'no trial' AND (parameters <> '' OR by_hand) ORDER BY id"
    )
    by_id = {row["id"]: row for row in rows}
    if root is not None and root not in by_id:
        raise TrialNotFound(f"experiment {reader.id} has no trial {root}")
    above: dict[int, int | None] = {
        trial: row["parent"] if row["parent"] in by_id and trial != root else None
        for trial, row in by_id.items()
    }
    generations, children = _descend(above, root)
    parents = {trial: above[trial] for trial in by_id if trial in generations}
    parameters = {trial: _flat(by_id[trial]["parameters"]) for trial in parents}
    values: dict[int, float | None] = {
        trial: by_id[trial]["number"] if by_id[trial]["told"] is not None else None
        for trial in parents
    }

    nodes: dict[int, LineageNode] = {}
    for trial, parent in parents.items():
        row = by_id[trial]
        restore = row["restore_path"]
        parents_own = {} if parent is None else parameters[parent]
        unlike = {} if parent is None else changed(parameters[trial], parents_own)
        nodes[trial] = LineageNode(
            id=trial,
            parent=parent,
            children=tuple(children.get(trial, ())),
            generation=generations[trial],
            state=row["state"],
            outcome=row["outcome"],
            value=values[trial],
            gain=_gain(mode, values[trial], None if parent is None else values[parent]),
            inherited=parent is not None and row["attempt"] > 0,
            pretrained=restore if restore is not None and restore.startswith("/") else None,
            has_weights=row["weights_digest"] is not None,
            by_hand=bool(row["by_hand"]),
            changed=unlike,
            changes=in_words(unlike, parents_own),
        )
    best = _best(mode, values)
    return Lineage(
        mode=mode,
        nodes=nodes,
        roots=tuple(trial for trial, parent in parents.items() if parent is None),
        best=best,
        best_path=_path(parents, best),
    )


def _descend(
    above: dict[int, int | None], root: int | None
) -> tuple[dict[int, int], dict[int, list[int]]]:
    """Find generations and children. A request may wait for a trial that was asked for after it, so
    a parent's number may be above its child's: walk down, do not count up."""
    children: dict[int, list[int]] = {}
    for trial, parent in above.items():
        if parent is not None:
            children.setdefault(parent, []).append(trial)
    starts = [t for t, p in above.items() if p is None] if root is None else [root]
    generations = dict.fromkeys(starts, 0)
    stack = starts
    while stack:
        trial = stack.pop()
        for child in children.get(trial, ()):
            generations[child] = generations[trial] + 1
            stack.append(child)
    return generations, children


def _flat(parameters: str) -> dict[str, Any]:
    value = json_value(parameters)
    return flatten(value, "") if isinstance(value, dict) else {}


def _best(mode: OptimizeMode, values: dict[int, float | None]) -> int | None:
    found: int | None = None
    top: float | None = None
    for trial, value in values.items():
        if value is not None and mode.better(value, top):
            found, top = trial, value
    return found


def _path(parents: dict[int, int | None], trial: int | None) -> tuple[int, ...]:
    path: list[int] = []
    while trial is not None:
        path.append(trial)
        trial = parents[trial]
    return tuple(reversed(path))


def _gain(mode: OptimizeMode, value: float | None, parent: float | None) -> float | None:
    if value is None or parent is None:
        return None
    return value - parent if mode is OptimizeMode.MAXIMIZE else parent - value


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
    if max(len(child), len(parent)) > _LONGEST_LIST:
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
