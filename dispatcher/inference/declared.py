"""The demo in a trial's module, read from the module's text: nothing of it is run."""

from __future__ import annotations

import ast
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from dispatcher.errors import UserError
from dispatcher.experiment import ExperimentConfig
from trial_runtime.inference import BYTES_KEY, INFER
from trial_runtime.opening import open_regular

#: The name of the literal that says what a request holds.
INPUTS: Final = "INFER_INPUTS"

#: Bytes of a module that are read.
_MOST_BYTES: Final = 512 << 10

#: The most fields of a request, and pixels on a side of a drawing.
_MOST_FIELDS: Final = 32
_Side = Annotated[int, Meta(ge=1, le=256)]
_MOST_NUMBER: Final = sys.float_info.max
_Label = Annotated[str, Meta(max_length=200)]


class InferInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One field of a request.

    ``number``: a float. ``text``: a text. ``image``: the bytes of an image file. ``drawing``: rows
    of numbers from 0 (paper) to 1 (ink), ``height`` rows of ``width``. ``default``: of a number or
    a text, for requests without it.
    """

    kind: Literal["number", "text", "image", "drawing"]
    label: _Label = ""
    default: int | float | Annotated[str, Meta(max_length=10_000)] | None = None
    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None
    width: _Side = 28
    height: _Side = 28


class TrialModule(NamedTuple):
    """The module of an experiment's trials.

    ``folder``: the one that is first on its path. ``script``: its file, if it is run as a script.
    ``python``: the program of a command; empty for the Python of bequeath.
    """

    folder: str
    name: str
    script: str = ""
    python: str = ""

    @property
    def file(self) -> Path:
        """The path of the module, whether it is there or not."""
        if self.script:
            return Path(self.script)
        path = Path(self.folder, *self.name.split("."))
        package = path / "__init__.py"
        return package if package.is_file() else path.with_suffix(".py")


class DeclaredDemo(NamedTuple):
    """A demo in a module: the fields of a request are known if it declares them."""

    module: TrialModule
    inputs: dict[str, InferInput] | None


def module_of(config: ExperimentConfig) -> TrialModule:
    """Return the module of an experiment's trials.

    Raises:
        UserError: it is not known, since the trials are a command that names no script of Python.
    """
    folder = str(config.trial_code_directory)
    if config.trial_function is not None:
        return TrialModule(folder, config.trial_function.partition(":")[0])
    try:
        words = shlex.split(config.trial_command or "")
    except ValueError:
        words = []
    python = Path(words[0]).name if words else ""
    rest = words[1:]
    while rest and rest[0] in ("-u", "-O", "-B", "-s", "-E"):
        rest = rest[1:]
    if python.startswith("python") and rest:
        if rest[0] == "-m" and len(rest) > 1:
            return TrialModule(folder, rest[1], python=words[0])
        script = Path(folder, rest[0])
        if script.suffix == ".py":
            return TrialModule(str(script.parent), script.stem, str(script), words[0])
    raise UserError(
        "it is not known which module has the trials' code: their command is no script of Python",
        hint=f"a demo needs trialFunction, or a trialCommand such as `python3 trial.py`, and a "
        f"function {INFER}(model, request) there",
        where="trialCommand",
    )


def offer_of(config: ExperimentConfig) -> DeclaredDemo:
    """Read what the module of an experiment's trials offers. Runs nothing of it.

    Raises:
        UserError: it is not here, cannot be read, has no such function, or declares fields that
            there are not.
    """
    module = module_of(config)
    where = str(module.file)
    names, declared = _read(_text(module.file), where)
    if INFER not in names and "*" not in names:
        raise UserError(
            f"these trials have no demo: {module.name} has no function {INFER}(model, request)",
            hint="docs/demo.md shows how one is written; it may be added after the trials have run",
            where=where,
        )
    if declared is None:
        return DeclaredDemo(module, None)
    return DeclaredDemo(module, _inputs(declared, where))


def _text(path: Path) -> bytes:
    try:
        descriptor = open_regular(os.path.realpath(path), os.O_RDONLY)
        with open(descriptor, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UserError(
            f"the trials' code is not on this machine: {error.strerror}",
            hint="ask on the machine where the experiment was started, or put its code back",
            where=str(path),
        ) from error
    if len(content) > _MOST_BYTES:
        raise UserError(
            f"the module has more than {_MOST_BYTES:,} bytes", hint="a demo needs a smaller one",
            where=str(path),
        )  # fmt: skip
    return content


def _read(content: bytes, where: str) -> tuple[set[str], ast.expr | None]:
    """Return the names at the top of a module, and the value of the declaration."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        at = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise UserError(f"the trials' code is no Python: {error}", where=where + at) from error
    names: set[str] = set()
    declared: ast.expr | None = None
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names.update(each.asname or each.name for each in aliases)
            case ast.Assign(targets=targets, value=value):
                assigned = {each.id for each in targets if isinstance(each, ast.Name)}
                names |= assigned
                declared = value if INPUTS in assigned else declared
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                names.add(name)
                declared = value if name == INPUTS else declared
            case _:
                pass
    return names, declared


def _inputs(declared: ast.expr, where: str) -> dict[str, InferInput]:
    where = f"{where}:{declared.lineno}"
    try:
        found = msgspec.convert(ast.literal_eval(declared), dict[str, InferInput])
        msgspec.json.encode(found)  # a character that is none of Unicode
    except (ValueError, TypeError, RecursionError, MemoryError, msgspec.ValidationError) as error:
        raise UserError(
            f"{INPUTS} cannot be read: {error}",
            hint=f"it is a literal, such as {INPUTS} = "
            '{"digit": {"kind": "drawing", "width": 8, "height": 8}}',
            where=where,
        ) from error
    if not 0 < len(found) <= _MOST_FIELDS:
        raise UserError(f"{INPUTS} has 1 to {_MOST_FIELDS} fields", where=where)
    for name, one in found.items():
        if not name.isidentifier() or len(name) > 64:
            raise UserError(f"{name[:80]!r} is no name of a field of {INPUTS}", where=where)
        if one.default is not None:
            _check_default(name, one, where)
    return found


def _check_default(name: str, one: InferInput, where: str) -> None:
    if one.kind not in ("number", "text"):
        raise UserError(
            f"{INPUTS}: {name!r} is of the kind {one.kind}, which has no default",
            hint="numbers and texts may have one",
            where=where,
        )
    if problem := _problem(one, one.default):
        raise UserError(
            f"{INPUTS}: the default of {name!r} is {one.default!r}, and must be {problem}",
            hint="a default is a value that a request might have there",
            where=where,
        )


def completed(inputs: dict[str, InferInput] | None, request: dict[str, Any]) -> dict[str, Any]:
    """Return a request with the defaults of what it lacks, if fields are declared.

    Raises:
        UserError: a field is unknown, missing, or of another kind; a text is none.
    """
    try:
        msgspec.json.encode(request)
    except UnicodeEncodeError as error:
        raise UserError(
            "a text of the request has a character that is none of Unicode",
            hint='texts are UTF-8; bytes are an object {"base64": TEXT}',
        ) from error
    if inputs is None:
        return request
    known = ", ".join(f"{name} ({one.kind})" for name, one in inputs.items())
    for name in request:
        if name not in inputs:
            raise UserError(f"there is no field {name[:80]!r}", hint=f"there are {known}")
    defaults = {name: one.default for name, one in inputs.items() if one.default is not None}
    request = {**defaults, **request}
    for name, one in inputs.items():
        if name not in request:
            raise UserError(f"the field {name!r} is missing", hint=f"there are {known}")
        if problem := _problem(one, request[name]):
            raise UserError(f"the field {name!r} must be {problem}")
    return request


def _problem(one: InferInput, value: Any) -> str:
    """Return what a value is not; empty if it is right."""
    if one.kind in ("image", "drawing") and _is_file(value):
        return ""
    match one.kind:
        case "number":
            if isinstance(value, bool) or not isinstance(value, int | float):
                return "a number"
            if not -_MOST_NUMBER <= value <= _MOST_NUMBER:  # JSON has no infinity
                return "a finite number"
            if one.minimum is not None and value < one.minimum:
                return f"{one.minimum:g} or more"
            if one.maximum is not None and value > one.maximum:
                return f"{one.maximum:g} or less"
        case "text":
            return "" if isinstance(value, str) else "a text"
        case "image":
            return f'the bytes of an image file: {{"{BYTES_KEY}": TEXT}}'
        case "drawing":
            if not _is_drawing(one, value):
                return f"a list of {one.height} rows of {one.width} numbers from 0 to 1"
    return ""


def _is_file(value: Any) -> bool:
    if not (isinstance(value, dict) and set(value) == {BYTES_KEY}):
        return False
    try:
        msgspec.convert(value[BYTES_KEY], bytes)
    except msgspec.ValidationError:
        return False
    return isinstance(value[BYTES_KEY], str)


def _is_drawing(one: InferInput, value: Any) -> bool:
    try:
        rows = msgspec.convert(value, list[list[Annotated[float, Meta(ge=0, le=1)]]])
    except msgspec.ValidationError:
        return False
    return len(rows) == one.height and all(len(row) == one.width for row in rows)
