"""Reads a YAML or JSON text as plain values with their places.

The node graph is read rather than the loaded values, since only nodes know the place of
every key, and since nothing but plain scalars, lists and mappings is ever constructed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.scanner import Scanner, ScannerError

from dispatcher.errors import ExperimentFileError
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.experiment.source import MOST_BYTES, Place, Source
from tuners.plain_json import JsonPath

MOST_VALUES = 200_000
"""Values after aliases are followed: a few lines of nested aliases can mean billions."""

MOST_TOKENS = 5 * MOST_VALUES
"""Keys, values and what stands between them."""

MOST_LEVELS = 100
"""Lists and mappings in one another: a parser takes seconds for a thousand of them."""

MOST_WHOLE = 10**300
"""Greatest whole number: a greater one is no floating-point number, and cannot be shown."""

#: Characters of a key without a mark of its own, by YAML's definition.
_LONGEST_KEY = 1024

_TOO_DEEP = f"is nested deeper than {MOST_LEVELS} levels"
_TOO_MANY = f"more than {MOST_VALUES:,} values"

_TAG = "tag:yaml.org,2002:"
_SCALARS = frozenset(_TAG + name for name in ("int", "float", "bool", "null"))
_TEXTS = frozenset(_TAG + name for name in ("str", "timestamp", "value"))

#: Those that a directive may name.
_VERSIONS = ((1, 1), (1, 2))


def read_source(text: str, origin: str, *, doubles: bool = False) -> Source:
    """Read one YAML document.

    Args:
        text: what the file holds.
        origin: what to call it in errors.
        doubles: allow keys that are given twice, and leave their errors, if they are any, to the
            caller (``Source.doubles``).

    Raises:
        ExperimentFileErrors: not YAML, keys given twice, tags, or more than it may hold.
    """
    if len(text) > MOST_BYTES:
        raise _one(origin, None, f"is larger than {MOST_BYTES >> 20} MiB")
    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = _Scanner
    yaml.composer.warn_double_anchors = False  # a name may be given anew
    try:
        root = yaml.compose(text)
    except _TooMuch as error:
        raise _one(origin, error.place, error.text) from None
    except MarkedYAMLError as error:
        raise _not_yaml(error, origin) from error
    except YAMLError as error:
        line = " ".join(str(error).split())
        raise _one(origin, (1, 1), f"is not YAML: {line}") from error
    if root is None:
        return Source(origin)
    reader = _NodeReader(yaml, origin)
    reader.source.value = reader.read(root, (), ())
    if reader.errors or (reader.source.doubles and not doubles):
        raise ExperimentFileErrors(reader.all_errors())
    return reader.source


def read_json_source(text: str, origin: str, *, doubles: bool = False) -> Source:
    """Read a JSON text; as strict about double keys as :func:`read_source`.

    Args:
        text: what the file holds.
        origin: what to call it in errors.
        doubles: allow keys that are given twice, see :func:`read_source`.

    Raises:
        ExperimentFileErrors: not JSON, or keys given twice.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise _one(origin, (error.lineno, error.colno), f"is not JSON: {error.msg}") from error
    except ValueError as error:  # of a number with thousands of digits, which has no place
        text = str(error).partition(";")[0]
        raise _one(origin, (1, 1), f"has a number that cannot be read: {text}") from error
    except RecursionError:
        value = None  # read_source refuses it at its place
    # JSON is YAML but for tabs between values, and inside its strings no tab is legal.
    source = read_source(text.replace("\t", " "), origin, doubles=doubles)
    source.value = value
    return source


def read_source_of(text: str, file: Path, origin: str, *, lax: bool = False) -> Source:
    """Read what a file holds: JSON if it is called so, else YAML.

    Args:
        text: what it holds.
        file: its path, for its name alone.
        origin: what to call it in errors.
        lax: for other frameworks: keys may be given twice, see :func:`read_source`, and what is no
            JSON is tried as YAML, too, which takes more.

    Raises:
        ExperimentFileErrors: not to be read, or keys given twice.
    """
    if file.suffix.lower() != ".json":
        return read_source(text, origin, doubles=lax)
    try:
        return read_json_source(text, origin, doubles=lax)
    except ExperimentFileErrors as not_json:
        if not lax:
            raise
        try:
            return read_source(text.replace("\t", " "), origin, doubles=True)
        except ExperimentFileErrors:
            raise not_json from None


class _TooMuch(YAMLError):
    """Raised where a text begins to hold more than it may; says what, as the end of a sentence."""

    def __init__(self, text: str, place: Place) -> None:
        super().__init__(text)
        self.text, self.place = text, place


class _Scanner(Scanner):
    """Reads no further than to the first level or token too many: the rest would take minutes, and
    gigabytes. Knows the places of numbers that stand for nothing.

    What may yet turn out to be a key is in the order of its places, one for each open list, so that
    the first one answers for all: a look at each of a hundred, at each token, took seconds.
    """

    def stale_possible_simple_keys(self) -> None:
        keys = self.possible_simple_keys
        while keys:
            level, first = next(iter(keys.items()))
            if first.line == self.reader.line and self.reader.index - first.index <= _LONGEST_KEY:
                return
            if first.required:
                super().stale_possible_simple_keys()  # raises
            del keys[level]

    def next_possible_simple_key(self) -> Any:
        if not self.possible_simple_keys:
            return super().next_possible_simple_key()
        return next(iter(self.possible_simple_keys.values())).token_number

    def fetch_more_tokens(self) -> Any:
        try:
            comment = super().fetch_more_tokens()
        except (ValueError, OverflowError) as error:  # of a character, or of a version
            text = "found a number that stands for nothing"
            raise ScannerError(None, None, text, self.reader.get_mark()) from error
        place = (self.reader.line + 1, self.reader.column)
        if len(self.flow_context) + len(self.indents) > MOST_LEVELS:
            raise _TooMuch(_TOO_DEEP, place)
        if self.tokens_taken > MOST_TOKENS:
            raise _TooMuch(_TOO_MANY, place)
        return comment

    def scan_yaml_directive_value(self, start_mark: Any) -> Any:
        version = super().scan_yaml_directive_value(start_mark)
        if version not in _VERSIONS:
            text = "found a version of YAML that nobody reads: there are 1.1 and 1.2"
            raise ScannerError(None, None, text, start_mark)
        return version


class _NodeReader:
    """Turns nodes into plain values; reads on after an error."""

    def __init__(self, yaml: YAML, origin: str) -> None:
        self.constructor = yaml.constructor
        self.source = Source(origin)
        self.errors: list[ExperimentFileError] = []
        self.lines: dict[ExperimentFileError, Place] = {}
        self.count = 0

    def refuse(self, node: Node, message: str, hint: str = "") -> None:
        self.errors.append(self._error(node, message, hint))

    def all_errors(self) -> list[ExperimentFileError]:
        """Return all errors, those of double keys included, in the order of the file."""
        return sorted(self.errors + self.source.doubles, key=lambda one: self.lines[one])

    def _error(self, node: Node, message: str, hint: str) -> ExperimentFileError:
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        where = f"{self.source.origin}:{line}:{column}"
        error = ExperimentFileError(message, hint=hint, where=where)
        self.lines[error] = (line, column)
        return error

    def read(self, node: Node, path: JsonPath, above: tuple[Node, ...]) -> Any:
        self.count += 1
        if self.count > MOST_VALUES:
            if self.count == MOST_VALUES + 1:
                self.refuse(node, f"{_TOO_MANY}, aliases followed")
            return None
        if any(node is outer for outer in above):
            self.refuse(node, "an alias that contains itself")
            return None
        if len(above) > MOST_LEVELS:  # by aliases
            self.refuse(node, _TOO_DEEP)
            return None
        self.source.values[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
        match node:
            case MappingNode() if node.tag == _TAG + "map":
                return self._mapping(node, path, (*above, node))
            case SequenceNode() if node.tag == _TAG + "seq":
                inner = (*above, node)
                return [self.read(n, (*path, i), inner) for i, n in enumerate(node.value)]
            case ScalarNode() if node.tag in _TEXTS:
                return str(node.value)
            case ScalarNode() if node.tag in _SCALARS:
                return self._scalar(node)
            case _:
                self.refuse(
                    node,
                    f"the tag {str(node.tag).replace(_TAG, '!!')!r} is not allowed here",
                    "write plain text, numbers, lists and mappings",
                )
                return None

    def _scalar(self, node: ScalarNode) -> Any:
        try:
            value = self.constructor.construct_object(node)
        except (ValueError, LookupError, YAMLError):
            wanted = "true or false" if node.tag == _TAG + "bool" else "a number"
            self.refuse(node, f"not {wanted}: {str(node.value)[:40]!r}")
            return None
        if isinstance(value, int) and abs(value) >= MOST_WHOLE:
            self.refuse(node, "a whole number of more than 300 digits")
            return None
        return value

    def _mapping(self, node: MappingNode, path: JsonPath, above: tuple[Node, ...]) -> Any:
        here = self.source.values[path]
        merges = [value for key, value in node.value if key.tag == _TAG + "merge"]
        # Merges first, so that what stands here itself overrides them, places included.
        merged: dict[str, Any] = {}
        for value_node in merges:
            merged |= self._merged(value_node, path, above)
        self.source.values[path] = here
        own: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                continue
            if not isinstance(key_node, ScalarNode) or key_node.tag not in _TEXTS:
                text = getattr(key_node, "value", "")
                shown = f"{text!r} " if isinstance(text, str) else ""
                self.refuse(key_node, f"the key {shown}is not text", "put it in quotes")
                continue
            key = str(key_node.value)
            if key in first:
                text = f"the key {key!r} is given twice, first in line {first[key]}"
                error = self._error(key_node, text, "remove one of the two")
                self.source.doubles.append(error)
            first[key] = key_node.start_mark.line + 1
            inner = (*path, key)
            self.source.keys[inner] = (first[key], key_node.start_mark.column + 1)
            own[key] = self.read(value_node, inner, above)
        return merged | own

    def _merged(self, node: Node, path: JsonPath, above: tuple[Node, ...]) -> dict[str, Any]:
        """Read ``<<: *anchor`` or ``<<: [*one, *other]``; of several the first one wins."""
        parts = node.value if isinstance(node, SequenceNode) else [node]
        result: dict[str, Any] = {}
        for part in parts:
            value = self.read(part, path, above)
            if not isinstance(value, dict):
                self.refuse(part, "'<<' merges mappings only")
                continue
            result = value | result
        return result


def _not_yaml(error: MarkedYAMLError, origin: str) -> ExperimentFileErrors:
    mark = error.problem_mark or error.context_mark
    place = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    problem = f"{error.problem or 'unreadable'}"
    if error.context:
        problem = f"{error.context}, {problem}"
    hint = ""
    if "'\\t'" in problem:
        hint = "indent with blanks; YAML does not allow tabs"
    elif "mapping values are not allowed" in problem:
        hint = "put a text that holds ': ' in quotes, and look at the indentation"
    elif "another document" in problem:
        hint = "keep one document; remove the line '---'"
    return _one(origin, place, f"is not YAML: {' '.join(problem.split())}", hint)


def _one(origin: str, place: Place | None, message: str, hint: str = "") -> ExperimentFileErrors:
    where = f"{origin}:{place[0]}:{place[1]}" if place else origin
    return ExperimentFileErrors([ExperimentFileError(message, hint=hint, where=where)])
