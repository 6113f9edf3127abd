"""Plain sentences for pydantic's errors, one per error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dispatcher.experiment.problems import Misfit, Misfits
from tuners.plain_json import JsonPath, kind_of, written_path

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_NUMBERS = {
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "tuple": "a list",
    "list": "a list",
    "dict": "a mapping",
    "model": "a section of keys",
}
_QUOTABLE = (bool, int, float)


def half_a_character(error: UnicodeEncodeError) -> tuple[str, str]:
    """Return text and hint for a lone surrogate, which pydantic has no message for."""
    text = f"holds half a character, {error.object[error.start]!r}"
    return text, "write the character itself, or both of its escapes"


def explain(error: ErrorDetails) -> Iterator[tuple[JsonPath, str, str]]:
    """Yield path, sentence and hint; one error of ours may name several places."""
    path: JsonPath = tuple(part for part in error["loc"] if not _is_pydantics_own(part))
    raised = error.get("ctx", {}).get("error")
    if isinstance(raised, Misfit | Misfits):
        for misfit in raised.misfits if isinstance(raised, Misfits) else (raised,):
            yield (*path, *misfit.at), _sentence(path, str(misfit)), misfit.hint
    elif error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]:
        return  # it is long enough: pydantic leaves out what is wrong itself, and says so there
    elif error["type"] == "missing":
        owner = f"{written_path(path[:-1])!r}" if path[:-1] else "the experiment"
        yield path, f"{owner} needs the key {path[-1]!r}", ""
    else:
        text, hint = _plain(error, raised)
        yield path, _sentence(path, text), hint


def _is_pydantics_own(part: str | int) -> bool:
    """Whether a part of pydantic's path is no key of the file.

    Pydantic appends one for a wrong key of a mapping, and one for the chosen class of several.
    """
    return isinstance(part, str) and (part == "[key]" or (part[:1], part[-1:]) == ("<", ">"))


def _sentence(path: JsonPath, text: str) -> str:
    if not path:
        return text if text.startswith("'") else f"the experiment {text}"
    return f"'{written_path(path)}' {text}"


def _plain(error: ErrorDetails, raised: object) -> tuple[str, str]:
    kind, value, ctx = error["type"], error["input"], error.get("ctx", {})
    if isinstance(raised, ValueError):
        return str(raised), ""
    if kind in _NUMBERS:
        return f"{_NUMBERS[kind].format(**ctx)}, not {value}", ""
    if kind == "literal_error":
        return f"must be {ctx['expected']}, not {kind_of(value)}", _literal_hint(value)
    if kind == "string_too_long":
        return f"must have at most {ctx['max_length']} characters, not {len(str(value))}", ""
    if kind == "string_too_short" or (kind == "too_short" and ctx["min_length"] == 1):
        return "must not be empty", ""
    family = kind.partition("_")[0]
    if family in _KINDS:
        return f"must be {_KINDS[family]}, not {kind_of(value)}", _quotes(family, value)
    return f"{error['msg'][:1].lower()}{error['msg'][1:]}", ""


def _quotes(family: str, value: Any) -> str:
    if family == "string" and isinstance(value, _QUOTABLE):
        shown = str(value).lower() if isinstance(value, bool) else value
        return f"put it in quotes: '{shown}'"
    if family in ("int", "float") and isinstance(value, str) and _is_number(value):
        return f"write {value.strip()} without quotes"
    return ""


def _literal_hint(value: object) -> str:
    return "" if isinstance(value, str) else "write one of these values"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
