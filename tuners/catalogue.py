"""The list of tuners and assessors, and a page on each, read from the classes themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tuners.arguments import is_code
from tuners.builtin import BUILTIN_ASSESSORS, BUILTIN_NAMES, builtin_assessor, builtin_tuner, fold
from tuners.errors import TunerArgumentError
from tuners.plugins import Kind, brought_by, plugins

#: Arguments for those that need some, for a first look or a trial run; by folded name.
EXAMPLE_ARGUMENTS: Mapping[str, dict[str, Any]] = {
    "networkmorphism": {"blocks": [{"width": 8}, {"width": 8}]},
    "morphingevolution": {"blocks": [{"width": 8}, {"width": 8}]},
    "schedule": {"schedule": [{"lr": 0.1}, {"lr": 0.01}]},
    "enas": {"operations": ["a", "b"], "layers": 2, "hidden": 4},
}

#: One small search space of each type.
_TYPES: Mapping[str, Any] = {
    "choice": {"_type": "choice", "_value": [1, 2]},
    "nested choice": {
        "_type": "choice",
        "_value": [{"_name": "a", "b": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "c"}],
    },
    "randint": {"_type": "randint", "_value": [0, 9]},
    "integers with steps": {"_type": "qrandint", "_value": [0, 9, 2]},
    "integers by logarithm": {"_type": "lograndint", "_value": [1, 99]},
    "uniform": {"_type": "uniform", "_value": [0, 1]},
    "quniform": {"_type": "quniform", "_value": [0, 1, 0.25]},
    "loguniform": {"_type": "loguniform", "_value": [0.1, 1]},
    "qloguniform": {"_type": "qloguniform", "_value": [1, 9, 1]},
    "normal": {"_type": "normal", "_value": [0, 1]},
    "qnormal": {"_type": "qnormal", "_value": [0, 1, 0.5]},
    "lognormal": {"_type": "lognormal", "_value": [0, 1]},
    "qlognormal": {"_type": "qlognormal", "_value": [0, 1, 0.5]},
    "lists of blocks": {
        "_type": "blocks",
        "_value": [1, 3, {"op": {"_type": "choice", "_value": ["conv", "pool"]}}],
    },
}
_NUMBERS: Mapping[str, Any] = dict.fromkeys(("three", "four"), _TYPES["uniform"])

#: Names of annotations for people.
_TYPE_NAMES = (
    ("np.ndarray", "lists of numbers"),
    ("Sequence[Mapping[str, Any]]", "list of objects"),
    ("Sequence[str]", "list of texts"),
    ("Mapping[str, Any]", "object"),
    ("dict[str, Any]", "object"),
    ("Mapping[str, str]", "object of texts"),
    ("Mapping[str, Sequence[float]]", "object of lists of numbers"),
)

_ITEM = re.compile(r"^    (\*{0,2}\w+): (.*(?:\n        .*)*)", re.MULTILINE)
_REFERENCE = re.compile(r"^[^\n]*:[^:]+(?:\b(?:19|20)\d\d\b|arXiv)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of the list. ``origin`` is ``bequeath`` or a package with its version."""

    kind: Kind
    name: str
    origin: str
    line: str


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a constructor, for people. ``default`` is JSON, or ``needed``."""

    name: str
    type: str
    default: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """The page on a tuner or an assessor."""

    kind: Kind
    name: str
    class_name: str
    text: str
    paper: str
    spaces: str
    arguments: tuple[Argument, ...]


def everything() -> list[Listed]:
    """All tuners, then all assessors; those of other packages are not imported for it."""
    found: list[Listed] = []
    own: tuple[tuple[Kind, tuple[str, ...]], ...] = (
        ("tuner", BUILTIN_NAMES),
        ("assessor", BUILTIN_ASSESSORS),
    )
    for kind, names in own:
        for name in names:
            line = _paragraphs(_class(kind, name))[0]
            found.append(Listed(kind, name, "bequeath", line))
        for name, point in sorted(plugins(kind).items()):
            found.append(Listed(kind, name, brought_by(point), point.value))
    return found


def describe(name: str) -> Page:
    """The page on one of them.

    Raises:
        TunerArgumentError: there is none of that name.
    """
    kind: Kind = "tuner"
    try:
        owner = _class("tuner", name)
    except TunerArgumentError:
        kind = "assessor"
        try:
            owner = _class("assessor", name)
        except TunerArgumentError:
            owner = _class("tuner", name)  # whose error names the nearest tuner
    paragraphs = _paragraphs(owner)
    paper = _paper(owner, paragraphs)
    registered = (*BUILTIN_NAMES, *BUILTIN_ASSESSORS, *plugins(kind))
    return Page(
        kind=kind,
        name=next((each for each in registered if fold(each) == fold(name)), name),
        class_name=f"{owner.__module__}.{owner.__qualname__}",
        text="\n\n".join(each for each in paragraphs if each != paper),
        paper=paper,
        spaces=_spaces(owner, name) if kind == "tuner" else "",
        arguments=tuple(_arguments(owner)),
    )


def _class(kind: Kind, name: str) -> type:
    return builtin_tuner(name) if kind == "tuner" else builtin_assessor(name)


def _doc(owner: type) -> str:
    """The docstring of a class, in plain marks."""
    return _read_aloud(inspect.cleandoc(owner.__doc__ or "no description"))


def _read_aloud(text: str) -> str:
    """A docstring's text with plain marks in place of Sphinx's roles."""
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text.replace("``", "`"))


def _paragraphs(owner: type) -> list[str]:
    """The docstring without its lists of arguments, each paragraph in one line."""
    text = re.split(r"^(?:Args|Attributes|Example):$", _doc(owner), flags=re.MULTILINE)[0]
    return [" ".join(part.split()) for part in text.strip().split("\n\n")]


def _paper(owner: type, paragraphs: list[str]) -> str:
    """The first paragraph, of the class or of its module, that names authors and a year."""
    for each in paragraphs[1:]:
        if _REFERENCE.match(each):
            return each
    module = inspect.getmodule(owner)
    text = _read_aloud(inspect.cleandoc((module.__doc__ if module is not None else "") or ""))
    for part in text.split("\n\n")[1:]:
        line = " ".join(part.split())
        if _REFERENCE.match(line):
            return line
    return ""


def _arguments(owner: type) -> Iterator[Argument]:
    texts: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        texts |= {key.lstrip("*"): " ".join(x.split()) for key, x in _ITEM.findall(_doc(base))}
    for parameter in inspect.signature(owner).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD and hasattr(owner, "more_arguments"):
            theirs = owner.more_arguments()
            for each in inspect.signature(theirs).parameters.values():
                if each.name != "seed" and not is_code(each):
                    yield _argument(each, f"of {theirs.__module__.split('.')[0]}'s own")
        else:
            yield _argument(parameter, texts.get(parameter.name, ""))


def _argument(parameter: inspect.Parameter, text: str) -> Argument:
    empty = parameter.default is parameter.empty
    default = "needed" if empty else _written(parameter.default)
    return Argument(parameter.name, _type(parameter), default, text)


def _type(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    for ours, word in _TYPE_NAMES:
        text = text.replace(ours, word)
    names = {"str": "text", "bool": "true or false", "float": "number", "int": "whole number"}
    parts = [part.strip() for part in text.split("|")]
    return " or ".join("null" if one == "None" else names.get(one, one) for one in parts)


def _written(value: Any) -> str:
    import json

    try:
        return json.dumps(value)
    except TypeError:
        return str(value)


def _spaces(owner: type, name: str) -> str:
    """The types it takes, found by giving an instance a space of each type, twice over."""
    try:
        tuner = owner(**EXAMPLE_ARGUMENTS.get(fold(name), {}))
    except (TunerArgumentError, TypeError):
        return ""
    handles = getattr(tuner, "handles", None)
    if handles is None:
        return ""
    taken = [kind for kind, one in _TYPES.items() if not handles({"one": one, "two": one})]
    refused = {kind: handles({"one": one}) for kind, one in _TYPES.items() if kind not in taken}
    if not taken:
        return f"none. {next(iter(refused.values()))}"
    # Some cannot be alone, and may stand beside numbers.
    never = [kind for kind in refused if handles({"one": _TYPES[kind], **_NUMBERS})]
    alone = [kind for kind in refused if kind not in never]
    shown = f"all types{' but ' if never else ''}{', '.join(never)}"
    if len(never) > len(taken):
        shown = ", ".join(taken)
    return f"{shown}; not by {', '.join(alone)} alone" if alone else shown
