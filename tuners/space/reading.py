"""Reading a search space, with every mistake named at its place.

A parameter is NNI's JSON (``{"_type": …, "_value": …}``), a short form of a file
(``"loguniform(1e-4, 1e-1)"``) or a value of :mod:`tuners.space.model`, as constructors make it.
"""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Mapping
from typing import Any, TypeAlias

from tuners.plain_json import MOST_WHOLE, JsonPath, kind_of, unjson, written_path
from tuners.space.constraints import constraints_of
from tuners.space.forms import FORMS, branches
from tuners.space.model import (
    BELLS,
    BLOCKS,
    CONSTRAINTS,
    INTEGERS,
    MOST_BLOCKS,
    OWN_TYPES,
    RANGES,
    TYPES,
    Bell,
    BlockList,
    Branch,
    Choice,
    Dimension,
    RandInt,
    Range,
    Space,
    SpaceError,
)
from tuners.space.short import called, is_short, read_short

_LIKELY_MISSPELT = 0.75
_LARGEST = sys.float_info.max
_LARGEST_LOG = math.log(_LARGEST)
_FARTHEST = 4  # sigmas from the mean that draws hardly ever leave
_EXAMPLE = (
    "write e.g. 'lr: loguniform(0.0001, 0.1)' or 'lr: {_type: loguniform, _value: [0.0001, 0.1]}'"
)
_OF_SEVERAL = "one of several options is written choice('conv', 'pool')"
_OF_BRANCHES = (
    "an option with parameters below it is written "
    "choice({'sgd': {'momentum': uniform(0, 1)}, 'adam': {}})"
)
_NUMBERS = {name: 3 if name.startswith("q") else 2 for name in (*TYPES, *OWN_TYPES)}
_FORMS = {
    "choice": "[option, option, …]",
    "randint": "[low, high]",
    "qrandint": "[low, high, step]",
    "lograndint": "[low, high]",
    BLOCKS: "[low, high, block]",
} | {
    name: ("[mu, sigma" if name in BELLS else "[low, high")
    + (", q]" if name.startswith("q") else "]")
    for name in (*RANGES, *BELLS)
}

_List: TypeAlias = "list[Any] | tuple[Any, ...]"


def parse(search_space: Any) -> Space:
    """Reads a search space in any of its forms; a parsed Space passes through.

    An empty object and NNI's empty string are the empty space. An option that is named twice is
    drawn as often; a range whose bounds are one number is that number.

    Raises:
        SpaceError: for the first mistake, with the keys that lead to it.
    """
    if isinstance(search_space, Space):
        return search_space
    if search_space in ("", None):
        return Space(())
    reader = _Reader(foreign=False, strict=False, repeats=True)
    space = reader.space(search_space, ())
    if reader.problems:
        raise reader.problems[0]
    return space


def problems(
    search_space: Any, *, strict: bool = True, repeats: bool = False
) -> tuple[SpaceError, ...]:
    """Returns every mistake in a search space, in its order; nothing if it holds.

    Args:
        search_space: names and parameters, in any form.
        strict: whether every entry must be of NNI's types and there must be one, as built-in
            tuners need it. A tuner of one's own may bring entries of its own kind; those of NNI's
            types are checked all the same.
        repeats: whether a choice may name an option twice, as with NNI: it is drawn as often; and
            whether both bounds of a range may be one number.
    """
    reader = _Reader(foreign=not strict, strict=strict, repeats=repeats)
    reader.space(search_space, ())
    return tuple(reader.problems)


def is_sound(entry: Any) -> bool:
    """Whether one parameter, in any form, has no mistake."""
    reader = _Reader(foreign=False, strict=False, repeats=False)
    reader.dimension(entry, ())
    return not reader.problems


def dimension_of(entry: Any) -> Dimension:
    """Reads one parameter in any form.

    Raises:
        SpaceError: for its first mistake.
    """
    reader = _Reader(foreign=False, strict=True, repeats=False)
    dimension = reader.dimension(entry, ())
    if reader.problems or dimension is None:
        raise reader.problems[0]
    return dimension


class _Reader:
    """Reads on after a mistake, so that one run names them all; what is wrong is left out.

    Attributes:
        foreign: whether entries that are not of NNI's types are passed over.
        strict: whether an empty space is refused, and a parameter that no tuner would draw.
        repeats: whether an option may be named twice, and a range be one number.
    """

    def __init__(self, *, foreign: bool, strict: bool, repeats: bool) -> None:
        self.foreign = foreign
        self.strict = strict
        self.repeats = repeats
        self.problems: list[SpaceError] = []

    def refuse(self, path: JsonPath, text: str, hint: str = "") -> None:
        self.problems.append(SpaceError(path, text, hint))

    def space(self, value: object, path: JsonPath) -> Space:
        if not isinstance(value, Mapping):
            self.refuse(path, f"must be a mapping of names to parameters, not {kind_of(value)}")
            return Space(())
        if not value and self.strict and not path:
            self.refuse(path, "is empty: a built-in tuner has nothing to choose from", _EXAMPLE)
        dimensions: list[tuple[str, Dimension]] = []
        for name, entry in value.items():
            if name == "_name" and path:
                continue  # that of the branch which these parameters are below
            if name == "_name" and not self.foreign:
                if self.strict or not isinstance(entry, str) or is_short(entry):
                    self.refuse((name,), "is an option's name, and no parameter's", _OF_BRANCHES)
                continue
            if name == CONSTRAINTS and not self.foreign:
                continue
            if entry is None and str(name).endswith(")") and self.problems:
                continue  # the rest of a short form that a comma of YAML has cut, see read_short
            dimension = self.dimension(entry, (*path, name))
            if dimension is not None:
                dimensions.append((str(name), dimension))
        read = tuple(dimensions)
        if CONSTRAINTS in value and not self.foreign:
            at = (*path, CONSTRAINTS)
            return Space(read, constraints_of(value[CONSTRAINTS], read, at, self.refuse))
        return Space(read)

    def _short(self, text: str, path: JsonPath) -> Dimension | None:
        """A short form, whose mistakes are named by the arguments of the call."""
        name = called(text)
        try:
            written = read_short(text)
        except SpaceError as error:
            self.refuse(path, f"is {text[:80]!r}, which {error.message}", error.hint)
            return None
        inner = _Reader(foreign=False, strict=True, repeats=self.repeats)
        dimension = inner.dimension(written, ())
        for each in inner.problems:
            where, at = "which", each.path[1:]
            if at:
                where = f"whose {FORMS[name].argument(int(at[0]))}"
                if at[1:]:
                    where += f" at {written_path(at[1:])}"
            hint = each.hint or f"write e.g. {FORMS[name].example}"
            self.refuse(path, f"is {text[:80]!r}, {where} {each.message}", hint)
        return dimension if not inner.problems else None

    def dimension(self, entry: object, path: JsonPath) -> Dimension | None:
        """One parameter in any form; None if it is none, which is a problem unless foreign."""
        if isinstance(entry, Dimension):
            return entry
        if isinstance(entry, str) and (is_short(entry) or not self.foreign):
            return self._short(entry, path)
        if callable(entry):
            name = getattr(entry, "__name__", "")
            hint = f"call it: {FORMS[name].example}" if name in FORMS else _EXAMPLE
            self.refuse(path, f"is a function, {name or 'which'!r}, and no parameter", hint)
            return None
        if not self._is_of_a_known_type(entry, path) or not isinstance(entry, Mapping):
            self._refuse_unjson(entry, path)
            return None
        kind, value = entry["_type"], entry.get("_value")
        for key in entry:
            if key not in ("_type", "_value"):
                self.refuse((*path, key), "is neither '_type' nor '_value'")
        at = (*path, "_value")
        if "_value" not in entry:
            self.refuse(path, "has a '_type' but no '_value'", f"{kind}: {_FORMS[kind]}")
        elif kind == "choice" and isinstance(value, Mapping):
            return self._named(value, at)
        elif not isinstance(value, list | tuple):
            self.refuse(at, f"must be a list, not {kind_of(value)}", f"{kind}: {_FORMS[kind]}")
        elif kind == "choice":
            return self._choice(value, at)
        elif kind == BLOCKS:
            return self._blocks(value, at)
        else:
            return self._numbers(kind, value, at)
        return None

    def _is_of_a_known_type(self, entry: object, path: JsonPath) -> bool:
        """Whether the entry is of one of NNI's types; a misspelt one is refused as such."""
        if not isinstance(entry, Mapping) or "_type" not in entry:
            if not self.foreign:
                self.refuse(path, "must be a mapping with '_type' and '_value'", _advice(entry))
            return False
        kind = entry["_type"]
        if isinstance(kind, str) and kind in (*TYPES, *OWN_TYPES):
            return True
        near = difflib.get_close_matches(str(kind), TYPES, 1, _LIKELY_MISSPELT)
        if near or not self.foreign:
            guess = f"; did you mean '{near[0]}'?" if near else ""
            self.refuse(
                (*path, "_type"), f"is unknown: {kind!r}{guess}", f"types are {', '.join(TYPES)}"
            )
        return False

    def _named(self, options: Mapping[Any, Any], path: JsonPath) -> Choice | None:
        """The options of a choice by their names, each with the parameters below it."""
        if not options:
            self.refuse(path, "is empty: a choice needs at least one option")
        try:
            branches(options)
        except SpaceError as error:
            self.refuse(path, error.message, error.hint)
            return None
        read = []
        for name, below in options.items():
            if not isinstance(name, str) or not name:
                self.refuse(path, f"has the name {name!r}, and names are texts")
            read.append(Branch(str(name), self.space(below or {}, (*path, name))))
        return Choice(tuple(read))

    def _choice(self, options: _List, path: JsonPath) -> Choice:
        if not options:
            self.refuse(path, "is empty: a choice needs at least one option")
        named = any(isinstance(option, Mapping) and "_name" in option for option in options)
        read: list[Any] = []
        seen: set[str] = set()
        for index, option in enumerate(options):
            at = (*path, index)
            if named and isinstance(option, Mapping):
                branch = self._branch(option, at)
                if branch is None:
                    continue
                if any(isinstance(one, Branch) and one.name == branch.name for one in read):
                    self.refuse((*at, "_name"), f"repeats the name {branch.name!r}")
                read.append(branch)
                continue
            if not self._refuse_dimension(option, at):
                continue
            self._refuse_unjson(option, at)
            self._refuse_parameters(option, at)
            if not named and not self.repeats:
                # By their text, as JSON compares: 1, 1.0 and true are three options.
                if repr(option) in seen:
                    self.refuse(at, f"repeats the option {option!r}")
                seen.add(repr(option))
            read.append(option)
        return Choice(tuple(read))

    def _refuse_dimension(self, option: object, path: JsonPath) -> bool:
        if not isinstance(option, Dimension):
            return True
        self.refuse(
            path,
            f"is the parameter {option!r} in the place of a plain value",
            f"parameters stand below a name: choice({{'a': {{'x': {option!r}}}, 'b': {{}}}})",
        )
        return False

    def _branch(self, option: Mapping[Any, Any], path: JsonPath) -> Branch | None:
        if "_name" not in option:
            self.refuse(
                path,
                "has no '_name' while others of this choice have one",
                "give each option a '_name', or none of them",
            )
            return None
        name = option["_name"]
        if not isinstance(name, str) or not name:
            self.refuse((*path, "_name"), f"must be text, not {kind_of(name)}")
        return Branch(str(name), self.space(option, path))

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

    def _blocks(self, value: _List, path: JsonPath) -> BlockList | None:
        """A list of blocks: the fewest, the most, and what each is."""
        before = len(self.problems)
        if len(value) != 3:
            form = f"{BLOCKS}: {_FORMS[BLOCKS]}"
            self.refuse(path, f"has {len(value)} values, {BLOCKS} needs 3", form)
            return None
        low, high, written = value
        for index, number in enumerate((low, high)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                text = f"must be a whole number from 0 up, not {kind_of(number)}"
                self.refuse((*path, index), text)
        block = self._block(written, (*path, 2))
        if block is None or len(self.problems) > before:
            return None
        blocks = BlockList(low, high, block)
        if high < max(low, 1):
            hint = "write the lower bound first, and an upper one above 0"
            self.refuse(path, f"is contradictory: {low} to {high} blocks", hint)
        elif blocks.most > MOST_BLOCKS:
            self.refuse(path, f"may have {blocks.most:,} blocks, and {MOST_BLOCKS:,} are the most")
        return blocks

    def _block(self, written: object, path: JsonPath) -> Dimension | Space | None:
        """Reads the block of a list: parameters by name, or one parameter alone."""
        if isinstance(written, Space):
            more = {CONSTRAINTS: ()} if written.constraints else {}
            written = dict(written.dimensions) | more
        if not isinstance(written, Mapping) or "_type" in written:
            return self.dimension(written, path)
        if not written:
            self.refuse(path, "is empty: a block has one parameter at least")
        if "_name" in written:
            hint = "write choice({'conv': {'width': int(8, 64)}, 'pool': {}}) as the block"
            self.refuse((*path, "_name"), "is the name of an option, and a block has none", hint)
        return self.space(written, path)

    def _numbers(self, kind: Any, value: _List, path: JsonPath) -> Dimension | None:
        before = len(self.problems)
        wanted = _NUMBERS[kind]
        if len(value) != wanted:
            form = f"{kind}: {_FORMS[kind]}"
            self.refuse(path, f"has {len(value)} values, {kind} needs {wanted}", form)
        for index, number in enumerate(value):
            whole = isinstance(number, int) and not isinstance(number, bool)
            if kind in INTEGERS and not whole:
                self.refuse((*path, index), f"must be a whole number, not {kind_of(number)}")
            elif not whole and not isinstance(number, float):
                self.refuse((*path, index), f"must be a number, not {kind_of(number)}")
            elif not -_LARGEST <= number <= _LARGEST:  # NaN, too
                self.refuse((*path, index), f"must be finite, not {number}")
            elif kind in INTEGERS and not -MOST_WHOLE <= number <= MOST_WHOLE:
                self.refuse((*path, index), f"must fit into 64 bits, not {str(number)[:24]}…")
        if len(self.problems) == before:
            self._contradictions(kind, value, path)
        if len(self.problems) > before:
            return None
        first, second, q = (*value, None)[:3]
        if kind in INTEGERS:
            return RandInt(first, second, q or 1, kind == "lograndint")
        if kind in BELLS:
            return Bell(kind, first, second, q)
        return Choice((float(first),)) if first == second else Range(kind, first, second, q)

    def _contradictions(self, kind: str, value: _List, path: JsonPath) -> None:
        first, second = value[0], value[1]
        if kind in BELLS:
            if second <= 0:
                self.refuse((*path, 1), f"is the sigma of {kind} and must be above 0, not {second}")
            elif "log" in kind and first + _FARTHEST * second > _LARGEST_LOG:
                text = f"is the mean of the logarithm, and e to the power of {first} is too large"
                self.refuse((*path, 0), text)
        elif second < first or (second == first and not (self.repeats and kind in RANGES)):
            self.refuse(
                path,
                f"is contradictory: {first} to {second} holds nothing",
                "write the lower bound first"
                + (", and an upper bound that is never reached" if kind in INTEGERS else ""),
            )
        elif kind in RANGES and second - first > _LARGEST:
            self.refuse(path, f"is wider than any number: {first} to {second}")
        elif "log" in kind and first <= 0:
            self.refuse((*path, 0), f"must be above 0 for {kind}, not {first}")
        if len(value) == 3 and value[2] <= 0:
            self.refuse((*path, 2), f"is the step of {kind} and must be above 0, not {value[2]}")

    def _refuse_unjson(self, value: object, path: JsonPath) -> None:
        for where, text in unjson(value, path):
            self.refuse(where, text)


def _advice(entry: object) -> str:  # for what is no parameter
    if isinstance(entry, list | tuple):
        return _OF_SEVERAL
    return _OF_BRANCHES if isinstance(entry, Mapping) and entry else _EXAMPLE
