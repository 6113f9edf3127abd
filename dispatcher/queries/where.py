"""Conditions on trials as people type them: ``lr<0.01 and optimizer=adam and outcome!=failed``.

    condition   either
    either      both ("or" both)*
    both        factor ("and" factor)*
    factor      "not" factor | "(" either ")" | comparison
    comparison  NAME OPERATOR value | NAME "in" "(" value ("," value)* ")"
    OPERATOR    = == != < <= > >= ~      (~: the text contains it)
    value       a number, true, false, null, a word, or a text in quotes

A name is a column of a trial (:data:`COLUMNS`), else a parameter: ``lr``, ``block.kernel``,
``blocks[2].kernel``; ``parameters.state`` is the parameter that is called as a column is,
``metrics.loss`` a value of the final result. Between backticks a name is taken as it is, and may
be a part of a longer one: ``block.`conv.kernel``` is how columns of an export are called. Without
them ``opt.lr`` is the parameter that is called so, dot and all, else ``lr`` within ``opt``.

A trial has any number of tags: ``tag=good`` holds if one of them is that, ``tag~data`` if one
contains that, ``tag!=good`` if none is, ``tag=null`` if there are none. ``starred=true`` are those
with a star.

A comparison is true or false, never unknown: with what a trial does not have it is false, so
``outcome!=failed``, which is ``not outcome=failed``, holds for those that run. Numbers are compared
with numbers and texts with texts; true is 1. The values never become a part of the SQL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from dispatcher.errors import UserError
from dispatcher.queries.names import QUOTED, Scalar, Sql, looked_up, steps_of

#: Characters, comparisons and levels of brackets of one condition.
MOST_CHARACTERS: Final = 2_000
MOST_COMPARISONS: Final = 100
MOST_LEVELS: Final = 20

_INTEGERS: Final = range(-(1 << 63), 1 << 63)

#: Names of a trial's own, as ``trial ls --json`` has them, and the columns behind them.
COLUMNS: Final = {
    **{
        name: name
        for name in (
            "id", "state", "outcome", "success", "parent", "by_hand", "attempt", "failures",
            "losses", "worker", "save_path", "restore_path", "weights_digest", "end_reason",
            "exit_code", "signal", "error", "tuner_error", "since", "asked_at", "proposed_at",
            "started_at", "ended_at", "cpu_s", "wall_s",
        )
    },
    "trial": "id",
    "value": "number",
    "result": "number",  # as tables call them
    "took": "wall_s",
    "weights_bytes": "weights_nbytes",
    "starred": "starred",
}  # fmt: skip

#: The name that stands for each tag of a trial: a comparison holds if it does for one of them.
TAG: Final = "tag"

#: The final result as JSON; NULL while there is none.
RESULT: Final = "coalesce(told, final)"

#: Beginnings of names, and the column with the JSON text in which the rest is looked up.
_INSIDE: Final = {"parameters": "parameters", "metrics": RESULT}

EXAMPLE: Final = "write it as in: lr<0.01 and optimizer=adam and outcome!=failed"

NAMES: Final = "write names with commas between them: lr,block.kernel,metrics.loss"

_ORDERS: Final = ("<", "<=", ">", ">=")

_PLAIN_PART: Final = r"[\w/:@%-]+(?:\[\d{1,9}\])*"
_QUOTED_PART: Final = rf"`{QUOTED}`(?:\[\d{{1,9}}\])*"

_TOKEN: Final = re.compile(
    rf"""
    (?P<space>\s+)
    | (?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w./:@%\[-]))
    | (?P<literal>(?:{_PLAIN_PART}\.)*{_QUOTED_PART}(?:\.(?:{_PLAIN_PART}|{_QUOTED_PART}))*)
    | (?P<word>[\w./:@%\[][\w./:@%\[\]-]*)
    | (?P<quoted>'[^']*'|"[^"]*")
    | (?P<operator>==|!=|<=|>=|[=<>~])
    | (?P<mark>[(),])
    """,
    re.VERBOSE,
)

_NAME: Final = re.compile(r"[^\W\d][\w/:@%-]*(\[\d{1,9}\])*(\.[\w/:@%-]+(\[\d{1,9}\])*)*")


class WhereError(UserError):
    """Raised for a condition that cannot be read; ``column`` counts its characters from 1."""

    def __init__(self, message: str, column: int, hint: str = EXAMPLE) -> None:
        super().__init__(message, hint=hint, where=f"where:{column}")
        self.column = column


class Condition(NamedTuple):
    """A condition as it was read: SQL over the table ``trials`` with its values, and the parameters
    that it names, each with its own expression."""

    text: str
    values: tuple[Scalar, ...]
    parameters: dict[str, Sql]


class _Token(NamedTuple):
    kind: str
    text: str
    column: int


def parse_condition(text: str) -> Condition:
    """Read a condition; empty: all trials.

    Raises:
        WhereError: it cannot be read, or is beyond a bound.
    """
    if len(text) > MOST_CHARACTERS:
        raise WhereError(
            f"a condition of {len(text):,} characters; {MOST_CHARACTERS:,} are allowed",
            MOST_CHARACTERS + 1,
            hint="ask for fewer things at once",
        )
    tokens = list(_tokens(text))
    if len(tokens) == 1:
        return Condition("1", (), {})
    return _Parser(tokens).whole()


def parse_names(text: str) -> dict[str, Sql]:
    """Read names with commas between them, as ``lr,block.kernel,metrics.loss``; ``tag`` is all tags
    of a trial, ``parameters`` all of them. Return each with its expression, in their order.

    Raises:
        WhereError: one cannot be read, or there are more than a hundred.
    """
    named: dict[str, Sql] = {}
    tokens = list(_tokens(text))
    for name, comma in zip(tokens[::2], [*tokens[1::2], tokens[-1]], strict=False):
        named[name.text] = _WHOLE.get(name.text) or _subject(name)
        if len(named) > MOST_COMPARISONS:
            raise WhereError(f"more than {MOST_COMPARISONS} names", name.column, NAMES)
        if comma.kind == "end":
            break
        if comma.text != ",":
            raise WhereError(f"a comma is missing before {comma.text!r}", comma.column, NAMES)
    return named


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unreadable(text, at)
        kind = match.lastgroup or ""
        if kind in ("quoted", "literal") and (bad := _no_text(match[0])) is not None:
            raise WhereError("this character cannot be in a text", at + bad + 1)
        if kind != "space":
            yield _Token(kind, match[0], at + 1)
        at = match.end()
    yield _Token("end", "", len(text) + 1)


def _unreadable(text: str, at: int) -> WhereError:
    character = text[at]
    if character in "'\"`":
        return WhereError(f"the {character} that begins here has no end", at + 1)
    if character in "&|!":
        return WhereError(f"{character!r} means nothing here", at + 1, "write and, or, not")
    return WhereError(f"{character!r} means nothing here", at + 1)


def _no_text(text: str) -> int | None:
    """Return the place of a character that no store has in a text."""
    for place, character in enumerate(text):
        if (character < " " and character != "\t") or "\ud800" <= character <= "\udfff":
            return place
    return None


class _Parser:
    """Walks the tokens once, from left to right."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._levels = 0
        self._comparisons = 0
        self._parameters: dict[str, Sql] = {}

    def whole(self) -> Condition:
        """Read all of it."""
        condition = self._either()
        rest = self._next()
        if rest.kind != "end":
            if rest.text == ")":
                raise WhereError("this bracket closes nothing", rest.column)
            raise WhereError(
                f"'and' or 'or' is missing before {rest.text!r}",
                rest.column,
                "a value of several words stands in quotes: outcome='timed out'",
            )
        return Condition(*condition, self._parameters)

    def _either(self) -> Sql:
        return self._joined("or", self._both)

    def _both(self) -> Sql:
        return self._joined("and", self._factor)

    def _joined(self, word: str, part: Callable[[], Sql]) -> Sql:
        parts = [part()]
        while self._takes(word):
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        text = f" {word.upper()} ".join(one.text for one in parts)
        return Sql(f"({text})", tuple(value for one in parts for value in one.values))

    def _factor(self) -> Sql:
        begins = self._peek()
        if begins.text.lower() not in ("not", "("):
            return self._comparison()
        self._next()
        self._levels += 1
        if self._levels > MOST_LEVELS:
            raise WhereError(
                f"nested more than {MOST_LEVELS} levels deep", begins.column, "write it flatter"
            )
        if begins.text == "(":
            inner = self._either()
            if not self._takes(")"):
                raise WhereError("the bracket that opens here is not closed", begins.column)
        else:
            inside = self._factor()
            inner = Sql(f"NOT {inside.text}", inside.values)
        self._levels -= 1
        return inner

    def _comparison(self) -> Sql:
        self._comparisons += 1
        token = self._next()
        if self._comparisons > MOST_COMPARISONS:
            text = f"more than {MOST_COMPARISONS} comparisons"
            raise WhereError(text, token.column, "ask for fewer things at once")
        subject = _subject(token)
        if "parameters" in subject.text:
            self._parameters[token.text.strip("`")] = subject
        operator = self._next()
        if operator.kind == "word" and operator.text.lower() == "in":
            return self._among(subject)
        if operator.kind != "operator":
            raise WhereError(
                f"a comparison is missing after {token.text!r}",
                operator.column,
                "one of = != < <= > >= ~ in",
            )
        return _compared(subject, operator, self._value(operator.text))

    def _among(self, subject: Sql) -> Sql:
        opens = self._next()
        if opens.text != "(":
            raise WhereError(
                "'in' is followed by values in brackets", opens.column, "as in: depth in (2, 4, 8)"
            )
        parts: list[Sql] = []
        while True:
            equal = _Token("operator", "=", opens.column)
            parts.append(_compared(subject, equal, self._value("(" if not parts else ",")))
            self._comparisons += 1
            if self._comparisons > MOST_COMPARISONS:
                text = f"more than {MOST_COMPARISONS} comparisons"
                raise WhereError(text, self._peek().column, "ask for fewer things at once")
            if not self._takes(","):
                break
        if not self._takes(")"):
            raise WhereError("the bracket that opens here is not closed", opens.column)
        text = " OR ".join(one.text for one in parts)
        return Sql(f"({text})", tuple(value for one in parts for value in one.values))

    def _value(self, after: str) -> Scalar:
        token = self._next()
        if token.kind == "quoted":
            return token.text[1:-1]
        if token.kind == "number":
            return _number(token)
        if token.kind != "word" or token.text.lower() in ("and", "or", "not", "in"):
            raise WhereError(f"a value is missing after {after!r}", token.column)
        constants: dict[str, Scalar] = {"true": 1, "false": 0, "null": None}
        return constants.get(token.text, token.text)

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def _takes(self, text: str) -> bool:
        token = self._peek()
        if token.kind in ("word", "mark") and token.text.lower() == text:
            self._at += 1
            return True
        return False


def _number(token: _Token) -> Scalar:
    try:
        whole = int(token.text)
    except ValueError:
        value = float(token.text)
    else:
        if whole in _INTEGERS:
            return whole
        value = float(whole) if len(token.text) < 300 else math.inf
    if not math.isfinite(value):
        raise WhereError("this number is too large", token.column)
    return value


def _subject(token: _Token) -> Sql:
    """Return the expression for the thing that is compared."""
    if token.kind == "literal":
        return _looked_up(token)
    if token.kind != "word" or token.text.lower() in ("and", "or", "not", "in"):
        missing = "at the end" if token.kind == "end" else f"before {token.text!r}"
        raise WhereError(f"a name is missing {missing}", token.column)
    if token.text == TAG:
        return _EACH_TAG
    if token.text in COLUMNS:
        return Sql(COLUMNS[token.text], ())
    if not _NAME.fullmatch(token.text):
        text = f"{token.text!r} is no name"
        raise WhereError(text, token.column, "a name with other characters stands in `backticks`")
    return _looked_up(token)


def _looked_up(token: _Token) -> Sql:
    inside, steps = steps_of(token.text)
    try:
        return looked_up(_INSIDE[inside], steps, alike="`" not in token.text)
    except ValueError as error:
        raise WhereError(str(error), token.column) from None


#: Stands for a trial's tags: one column of a list, in which :func:`_compared` looks.
_EACH_TAG: Final = Sql("json_each.value", ())

#: Names that are several things in conditions, and one where columns are named.
_WHOLE: Final = {
    TAG: Sql(
        "(SELECT group_concat(value, ' ') FROM (SELECT value FROM json_each(tags) ORDER BY value))",
        (),
    ),
    "parameters": Sql("parameters", ()),
}


def _compared(subject: Sql, operator: _Token, value: Scalar) -> Sql:
    if subject is _EACH_TAG:
        return _some_tag(operator, value)
    return _single(subject, operator, value)


def _some_tag(operator: _Token, value: Scalar) -> Sql:
    """One tag is, or contains, a text; ``tag=null``: there is none."""
    word = "NOT " if operator.text == "!=" else ""
    equal = operator._replace(text="=") if word else operator
    one = _single(_EACH_TAG, equal, value)  # refuses what null is not compared by
    if value is None:
        return Sql(f"({word}tags = '[]')", ())
    return Sql(f"({word}EXISTS (SELECT 1 FROM json_each(tags) WHERE {one.text}))", one.values)  # noqa: S608


def _single(subject: Sql, operator: _Token, value: Scalar) -> Sql:
    left = f"({subject.text})"
    if operator.text in ("=", "==", "!="):
        word = "IS NOT" if operator.text == "!=" else "IS"
        return Sql(f"({left} {word} ?)", (*subject.values, value))
    if value is None:
        raise WhereError(
            f"null is compared by = and != only, not by {operator.text!r}", operator.column
        )
    if operator.text == "~":
        text = f"(typeof({left}) = 'text' AND instr({left}, ?) > 0)"
        return Sql(text, (*subject.values, *subject.values, str(value)))
    assert operator.text in _ORDERS
    kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
    text = f"(typeof({left}) IN {kinds} AND {left} {operator.text} ?)"
    return Sql(text, (*subject.values, *subject.values, value))
