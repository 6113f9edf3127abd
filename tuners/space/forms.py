"""The calls that write a parameter in short, and what each means in NNI's JSON.

One table for the constructors in Python (:mod:`tuners.space.parameters`) and the short forms of a
file (:mod:`tuners.space.short`): names, arguments, and the JSON that they stand for. Whether the
numbers make sense is judged where NNI's JSON is read, in :mod:`tuners.space.reading`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuners.plain_json import kind_of
from tuners.space.model import BLOCKS, SpaceError

_LIKELY_MISSPELT = 0.6

Entry = dict[str, Any]
"""One parameter in NNI's JSON: ``{"_type": …, "_value": […]}``."""


@dataclass(frozen=True, slots=True)
class Form:
    """One call. ``arguments`` need a value each; ``defaults`` are those that may be left out."""

    name: str
    arguments: tuple[str, ...]
    example: str
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def signature(self) -> str:
        """The call as a person writes it."""
        given = [f"{name}={value}" for name, value in self.defaults.items()]
        needed = ["option, …"] if self.name == "choice" else list(self.arguments)
        return f"{self.name}({', '.join([*needed, *given])})"

    def argument(self, place: int) -> str:
        """The name of the argument that stands at a place of NNI's ``_value``."""
        if self.name == "choice" or place >= len(self.arguments):
            return f"option {place + 1}"
        return self.arguments[place]


def _range(name: str, example: str) -> Form:
    return Form(name, ("low", "high", "q") if name.startswith("q") else ("low", "high"), example)


def _bell(name: str, example: str) -> Form:
    return Form(name, ("mu", "sigma", "q") if name.startswith("q") else ("mu", "sigma"), example)


_ALL = (
    Form("choice", ("option",), "choice('relu', 'gelu')"),
    Form("int", ("low", "high"), "int(1, 8)", {"step": 1, "log": False}),
    Form("randint", ("low", "high"), "randint(0, 10)"),
    _range("uniform", "uniform(0, 1)"),
    _range("quniform", "quniform(0, 1, 0.25)"),
    _range("loguniform", "loguniform(1e-4, 1e-1)"),
    _range("qloguniform", "qloguniform(16, 1024, 16)"),
    _bell("normal", "normal(0, 1)"),
    _bell("qnormal", "qnormal(0, 10, 1)"),
    _bell("lognormal", "lognormal(-3, 1)"),
    _bell("qlognormal", "qlognormal(3, 1, 1)"),
    Form(
        BLOCKS,
        ("low", "high", "block"),
        "blocks(1, 8, {'op': choice('conv', 'pool'), 'width': int(8, 64)})",
    ),
)

FORMS: Mapping[str, Form] = {form.name: form for form in _ALL}
"""Every call by its name."""

#: How others call the same: name → ours, for those that come from there.
_OF_OTHERS = {
    "qrandint": "int(low, high, step)",
    "lograndint": "int(low, high, log=True)",
    "suggest_int": "int(low, high)",
    "suggest_float": "uniform(low, high)",
    "suggest_categorical": "choice(option, …)",
    "float": "uniform(low, high)",
    "integer": "int(low, high)",
    "categorical": "choice(option, …)",
    "grid_search": "choice(option, …)",
    "log_uniform": "loguniform(low, high)",
    "randn": "normal(mu, sigma)",
}


def near(name: str) -> str:
    """The call that a misspelt name most likely stands for, as it is written; empty: none."""
    plain = name.rpartition(".")[2]
    if plain in FORMS:
        return FORMS[plain].example
    lower = plain.lower()
    if lower in _OF_OTHERS:
        return _OF_OTHERS[lower]
    close = difflib.get_close_matches(lower, FORMS, 1, _LIKELY_MISSPELT)
    return FORMS[close[0]].example if close else ""


def entry(name: str, given: Sequence[Any], named: Mapping[str, Any]) -> Entry:
    """The JSON of a call.

    Args:
        name: of a form.
        given: values of its arguments, in their order.
        named: values of those that are given by name.

    Raises:
        SpaceError: too few, too many, or none of that name.
    """
    form = FORMS[name]
    if name == "choice":
        if named:
            other = next(iter(named))
            raise SpaceError((), f"takes options only, not {other}=", f"write e.g. {form.example}")
        return {"_type": "choice", "_value": _options(given)}
    values = _bound(form, given, named)
    if name == "int":
        return _integers(**values)
    return {"_type": name, "_value": list(values.values())}


def _bound(form: Form, given: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    names = (*form.arguments, *form.defaults)
    if len(given) > len(names):
        text = f"has {len(given)} arguments, and takes {len(names)} at most"
        raise SpaceError((), text, f"write {form.signature}")
    values = dict(zip(names, given, strict=False))
    for name, value in named.items():
        if name not in names:
            close = difflib.get_close_matches(name, names, 1, _LIKELY_MISSPELT)
            guess = f"; did you mean {close[0]!r}?" if close else ""
            raise SpaceError((), f"has no argument {name!r}{guess}", f"write {form.signature}")
        if name in values:
            raise SpaceError((), f"has {name!r} twice", f"write {form.signature}")
        values[name] = value
    missing = [name for name in form.arguments if name not in values]
    if missing:
        raise SpaceError((), f"lacks {' and '.join(missing)}", f"write e.g. {form.example}")
    return {name: values.get(name, form.defaults.get(name)) for name in names}


def _integers(low: Any, high: Any, step: Any, log: Any) -> Entry:
    for name, value in (("low", low), ("high", high), ("step", step)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise SpaceError((), f"needs a whole number for {name}, not {kind_of(value)}")
    if not isinstance(log, bool):
        raise SpaceError((), f"needs true or false for log, not {kind_of(log)}", "write log=True")
    if high < low:
        raise SpaceError((), f"holds nothing: {low} to {high}", "write the lower bound first")
    if step < 1:
        raise SpaceError((), f"needs a step above 0, not {step}")
    if not log:
        last = low + (high - low) // step * step
        if step == 1 or last == low:
            return {"_type": "randint", "_value": [low, last + 1]}
        return {"_type": "qrandint", "_value": [low, last + 1, step]}
    if step != 1:
        hint = "leave one of the two out, or list the numbers: choice(16, 32, 64)"
        raise SpaceError((), "has a step, and is logarithmic", hint)
    if low < 1:
        raise SpaceError((), f"needs a low above 0 for log, not {low}")
    return {"_type": "lograndint", "_value": [low, high + 1]}


def _options(given: Sequence[Any]) -> list[Any]:
    """The options of a choice: as arguments, as one list, or by names with what lies below them."""
    if len(given) != 1:
        return list(given)
    (only,) = given
    if isinstance(only, list | tuple):
        return list(only)
    if isinstance(only, Mapping) and "_name" not in only:
        return branches(only)
    return [only]


def branches(named: Mapping[Any, Any]) -> list[Any]:
    """The options of a nested choice that is written as a mapping of names to parameters.

    Raises:
        SpaceError: what stands below a name is no mapping.
    """
    options = []
    for name, below in named.items():
        if below is not None and not isinstance(below, Mapping):
            raise SpaceError(
                (),
                f"has {kind_of(below)} below {name!r}, and needs the parameters of that option",
                f"write {{{name}: {{}}}} for none; options without parameters are arguments: "
                "choice('sgd', 'adam')",
            )
        options.append({"_name": name, **(below or {})})
    return options
