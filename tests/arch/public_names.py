"""What users may import, with signatures, as text: ``public_names.txt``.

``python -m tests.arch.public_names`` writes it; ``test_public_names`` compares. What is in the
file is a promise: a line that changes is a line of ``CHANGELOG.md``.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bequeath.names import HOMES

PACKAGES = (
    "bequeath",
    "dispatcher",
    "dispatcher.platforms.protocol",
    "dispatcher.study",
    "dispatcher.testing",
    "tuners",
    "tuners.space.parameters",
    "tuners.testing",
    "trial_runtime",
    "trial_runtime.morphism",
    "trial_runtime.weights",
    "nfs_setup",
)
PAGE = Path(__file__).with_name("public_names.txt")

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # of a default that is a function

_OURS = {name.partition(".")[0] for name in PACKAGES}


def page() -> str:
    """The whole file."""
    lines = ["# What may be imported from where. Written by: python -m tests.arch.public_names"]
    for package in PACKAGES:
        module = importlib.import_module(package)
        lines += ["", f"[{package}]"]
        if package == "bequeath":  # names of the others
            lines += [f"{name}: of {home}" for name, home in sorted(HOMES.items())]
            continue
        values = {name: getattr(module, name) for name in sorted(module.__all__)}
        for name, value in values.items():
            lines += _describe(name, value, list(values.values()))
    return "\n".join(lines) + "\n"


def _describe(name: str, value: Any, beside: list[Any]) -> Iterator[str]:
    if inspect.isclass(value):
        yield from _describe_class(name, value, beside)
    elif callable(value):
        yield f"def {name}{_signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def _describe_class(name: str, owner: type, beside: list[Any]) -> Iterator[str]:
    """With what it inherits, unless from a class that is listed itself."""
    bases = ", ".join(base.__name__ for base in _bases(owner, beside) if base is not object)
    yield f"class {name}({bases})" if bases else f"class {name}"
    if issubclass(owner, enum.Enum):
        yield f"    {', '.join(member.name for member in owner)}"
        return
    keys = getattr(owner, "model_fields", None)
    if keys is None:
        yield f"    def __init__{_signature(owner)}"
    else:  # a section of the experiment file: its reference says which values they take
        yield f"    keys: {', '.join(info.alias or name for name, info in keys.items())}"
    members: dict[str, Any] = {}
    listed = [each for each in owner.__mro__[1:] if each in beside]
    for each in reversed(owner.__mro__):
        shown = any(issubclass(one, each) for one in listed)
        if not shown and each.__module__.partition(".")[0] in _OURS:
            members.update(vars(each))
    fields = dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ()
    told = {field.name for field in fields}  # in the signature of __init__
    for member in sorted(members.keys() - told):
        if not member.startswith("_"):
            yield from _describe_member(member, members[member])


def _bases(owner: type, beside: list[Any]) -> Iterator[type]:
    """Its bases; those of ours that nobody imports are passed over for what they derive from."""
    for base in owner.__bases__:
        if base in beside or base.__module__.partition(".")[0] not in _OURS:
            yield base
        else:
            yield from _bases(base, beside)


def _describe_member(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, property):
        yield f"    {name}: property{_signature(value.fget).partition(')')[2]}"
    elif isinstance(value, classmethod | staticmethod):
        kind = type(value).__name__
        yield f"    {kind} {name}{_signature(value.__func__)}"
    elif inspect.isfunction(value):
        yield f"    def {name}{_signature(value)}"
    elif not inspect.ismemberdescriptor(value):
        yield f"    {name}"


class _Plain(str):
    """An annotation that is shown without the quotes of a text."""

    def __repr__(self) -> str:
        return str(self)


def _signature(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except ValueError:  # written in C, as the constructors of exceptions are
        return "(...)"
    parameters = [
        parameter.replace(annotation=_plain(parameter.annotation))
        for parameter in signature.parameters.values()
    ]
    returned = _plain(signature.return_annotation)
    text = str(signature.replace(parameters=parameters, return_annotation=returned))
    return _ADDRESS.sub("", text)


def _plain(annotation: Any) -> Any:
    return _Plain(annotation) if isinstance(annotation, str) else annotation


if __name__ == "__main__":
    PAGE.write_text(page())
