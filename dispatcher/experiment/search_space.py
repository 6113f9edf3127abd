"""The search space in NNI's JSON types, checked entry by entry into frozen dataclasses.

Only for validation: the tuner gets the plain JSON and samples by itself. Each problem names
its path in the space (``lr._value[1]``), which the loader turns into a line and column.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dispatcher.experiment.plain_json import JsonPath, kind_of, unjson, written_path

INTERVALS = frozenset({"uniform", "quniform", "loguniform", "qloguniform"})
NORMALS = frozenset({"normal", "qnormal", "lognormal", "qlognormal"})
TYPES = ("choice", "randint", *sorted(INTERVALS), *sorted(NORMALS))
_LIKELY_MISSPELT = 0.75


@dataclass(frozen=True, slots=True)
class SpaceProblem:
    """A problem at one place of a search space, and what would mend it."""

    path: JsonPath
    text: str
    hint: str = ""

    def place(self, root: str = "") -> str:
        """Return the path as a person writes it, ``lr._value[1]``, below ``root``."""
        return written_path(self.path, root)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several plain options."""

    options: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class NestedChoice:
    """One of several named branches with their own parameters, or of plain options among them."""

    branches: tuple[tuple[str, SearchSpace], ...]
    plain: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class RandInt:
    """A whole number n with ``low <= n < high``."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A number between ``low`` and ``high``; ``log`` of its logarithm, in steps of ``q``."""

    low: float
    high: float
    log: bool = False
    q: float | None = None


@dataclass(frozen=True, slots=True)
class Normal:
    """A number around ``mu``; ``log``: mu and sigma are those of its logarithm."""

    mu: float
    sigma: float
    log: bool = False
    q: float | None = None


@dataclass(frozen=True, slots=True)
class Foreign:
    """An entry in a language of the tuner's own, passed on unread."""

    value: Any


Parameter: TypeAlias = Choice | NestedChoice | RandInt | Interval | Normal | Foreign


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Parameters in the order of the file."""

    parameters: tuple[tuple[str, Parameter], ...]


class SearchSpaceError(ValueError):
    """Raised when a search space does not hold; ``problems`` names every place."""

    def __init__(self, problems: tuple[SpaceProblem, ...]) -> None:
        super().__init__("; ".join(f"{p.place('searchSpace')} {p.text}" for p in problems))
        self.problems = problems


def parse_search_space(value: object, *, strict: bool = True, repeats: bool = False) -> SearchSpace:
    """Read a search space.

    Args:
        value: the plain JSON object.
        strict: whether every entry must be of NNI's types and there must be one (what
            built-in tuners need). A tuner of one's own may bring entries of its own kind;
            those of NNI's types are checked all the same.
        repeats: whether a choice may name an option twice, as with NNI: it is drawn as often;
            and whether both bounds of an interval may be one number.

    Raises:
        SearchSpaceError: with every problem found.
    """
    reader = _Reader(strict, repeats)
    space = reader.space(value, ())
    if reader.problems:
        raise SearchSpaceError(tuple(reader.problems))
    return space


def check_search_space(value: object, *, strict: bool = True) -> tuple[SpaceProblem, ...]:
    """Return what is wrong with a search space; empty if nothing is."""
    try:
        parse_search_space(value, strict=strict)
    except SearchSpaceError as error:
        return error.problems
    return ()


class _Reader:
    """Reads on after a problem, so that one run names them all."""

    def __init__(self, strict: bool, repeats: bool = False) -> None:
        self.strict = strict
        self.repeats = repeats
        self.problems: list[SpaceProblem] = []

    def refuse(self, path: JsonPath, text: str, hint: str = "") -> None:
        self.problems.append(SpaceProblem(path, text, hint))

    def space(self, value: object, path: JsonPath) -> SearchSpace:
        if not isinstance(value, Mapping):
            self.refuse(path, f"must be a mapping of names to parameters, not {kind_of(value)}")
            return SearchSpace(())
        if not value and self.strict and not path:
            self.refuse(path, "is empty: a built-in tuner has nothing to choose from", _EXAMPLE)
        named = [(str(name), self.parameter(entry, (*path, name))) for name, entry in value.items()]
        return SearchSpace(tuple(named))

    def parameter(self, entry: object, path: JsonPath) -> Parameter:
        if not self._is_of_a_known_type(entry, path) or not isinstance(entry, Mapping):
            self._refuse_unjson(entry, path)
            return Foreign(entry)
        kind, value = entry["_type"], entry.get("_value")
        for key in entry:
            if key not in ("_type", "_value"):
                self.refuse((*path, key), "is neither '_type' nor '_value'")
        at = (*path, "_value")
        if "_value" not in entry:
            self.refuse(path, "has a '_type' but no '_value'", f"{kind}: {_FORMS[kind]}")
        elif not isinstance(value, list | tuple):
            self.refuse(at, f"must be a list, not {kind_of(value)}", f"{kind}: {_FORMS[kind]}")
        elif kind == "choice":
            return self._choice(value, at)
        else:
            return self._numbers(kind, value, at)
        return Foreign(entry)

    def _is_of_a_known_type(self, entry: object, path: JsonPath) -> bool:
        """Whether the entry is of one of NNI's types; a misspelt one is refused as such."""
        if not isinstance(entry, Mapping) or "_type" not in entry:
            if self.strict:
                self.refuse(path, "must be a mapping with '_type' and '_value'", _EXAMPLE)
            return False
        kind = entry["_type"]
        if isinstance(kind, str) and kind in TYPES:
            return True
        near = difflib.get_close_matches(str(kind), TYPES, 1, _LIKELY_MISSPELT)
        if self.strict or near:
            guess = f"; did you mean '{near[0]}'?" if near else ""
            self.refuse(
                (*path, "_type"), f"is unknown: {kind!r}{guess}", f"types are {', '.join(TYPES)}"
            )
        return False

    def _choice(self, options: list[Any] | tuple[Any, ...], path: JsonPath) -> Parameter:
        if not options:
            self.refuse(path, "is empty: a choice needs at least one option")
        if any(isinstance(option, Mapping) and "_name" in option for option in options):
            return self._branches(options, path)
        seen: set[str] = set()
        for index, option in enumerate(options):
            self._refuse_unjson(option, (*path, index))
            self._refuse_parameters(option, (*path, index))
            # By their text, as JSON compares: 1, 1.0 and true are three options.
            if repr(option) in seen and not self.repeats:
                self.refuse((*path, index), f"repeats the option {option!r}")
            seen.add(repr(option))
        return Choice(tuple(options))

    def _branches(self, options: list[Any] | tuple[Any, ...], path: JsonPath) -> NestedChoice:
        branches: list[tuple[str, SearchSpace]] = []
        plain: list[Any] = []
        seen: set[str] = set()
        for index, option in enumerate(options):
            if not isinstance(option, Mapping):
                self._refuse_unjson(option, (*path, index))
                self._refuse_parameters(option, (*path, index))
                plain.append(option)
                continue
            if "_name" not in option:
                self.refuse(
                    (*path, index),
                    "has no '_name' while others of this choice have one",
                    "give each option a '_name', or none of them",
                )
                continue
            name = option["_name"]
            if not isinstance(name, str) or not name:
                self.refuse((*path, index, "_name"), f"must be text, not {kind_of(name)}")
            elif name in seen:
                self.refuse((*path, index, "_name"), f"repeats the name {name!r}")
            seen.add(str(name))
            inner = {key: entry for key, entry in option.items() if key != "_name"}
            branches.append((str(name), self.space(inner, (*path, index))))
        return NestedChoice(tuple(branches), tuple(plain))

    def _refuse_parameters(self, option: object, path: JsonPath) -> None:
        """Refuse a parameter within an option, which is taken literally and so would not be drawn.

        Some releases of NNI before v0.6 drew those in lists.
        """
        if not self.strict:
            return
        if isinstance(option, Mapping) and "_type" in option and "_value" in option:
            self.refuse(
                path,
                "is a parameter within an option, which is taken as it stands",
                "an option with parameters of its own needs a name: "
                "{_name: conv, size: {_type: choice, _value: [3, 5]}}",
            )
        elif isinstance(option, Mapping | list | tuple):
            inner = option.items() if isinstance(option, Mapping) else enumerate(option)
            for key, each in inner:
                self._refuse_parameters(each, (*path, key))

    def _numbers(self, kind: str, value: list[Any] | tuple[Any, ...], path: JsonPath) -> Parameter:
        before = len(self.problems)
        wanted = 3 if kind.startswith("q") else 2
        if len(value) != wanted:
            self.refuse(
                path, f"has {len(value)} values, {kind} needs {wanted}", f"{kind}: {_FORMS[kind]}"
            )
        for index, number in enumerate(value):
            whole = isinstance(number, int) and not isinstance(number, bool)
            if kind == "randint" and not whole:
                self.refuse((*path, index), f"must be a whole number, not {kind_of(number)}")
            elif not whole and not isinstance(number, float):
                self.refuse((*path, index), f"must be a number, not {kind_of(number)}")
            elif not math.isfinite(number):
                self.refuse((*path, index), f"must be finite, not {number}")
        if len(self.problems) == before:
            self._contradictions(kind, value, path)
        if len(self.problems) > before:
            return Foreign(value)
        if kind == "randint":
            return RandInt(*value)
        q = float(value[2]) if wanted == 3 else None
        make = Interval if kind in INTERVALS else Normal
        return make(float(value[0]), float(value[1]), "log" in kind, q)

    def _contradictions(
        self, kind: str, value: list[Any] | tuple[Any, ...], path: JsonPath
    ) -> None:
        first, second = value[0], value[1]
        if kind in NORMALS:
            if second <= 0:
                self.refuse((*path, 1), f"is the sigma of {kind} and must be above 0, not {second}")
        elif second < first or (second == first and not (self.repeats and kind in INTERVALS)):
            self.refuse(
                path,
                f"is contradictory: {first} to {second} holds nothing",
                "write the lower bound first"
                + (", and an upper bound that is never reached" if kind == "randint" else ""),
            )
        elif "log" in kind and first <= 0:
            self.refuse((*path, 0), f"must be above 0 for {kind}, not {first}")
        if len(value) == 3 and value[2] <= 0:
            self.refuse((*path, 2), f"is the step of {kind} and must be above 0, not {value[2]}")

    def _refuse_unjson(self, value: object, path: JsonPath) -> None:
        for where, text in unjson(value, path):
            self.refuse(where, text)


_EXAMPLE = "write e.g. 'lr: {_type: loguniform, _value: [0.0001, 0.1]}'"
_FORMS = {"choice": "[option, option, …]", "randint": "[low, high]"} | {
    name: ("[mu, sigma" if name in NORMALS else "[low, high")
    + (", q]" if name.startswith("q") else "]")
    for name in INTERVALS | NORMALS
}
