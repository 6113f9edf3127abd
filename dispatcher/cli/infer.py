"""``bequeath infer``: a request to a trial's trained model, and its answer."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dispatcher.cli.arguments import Folder, Json, OfExperiment, Trial, context_for
from dispatcher.errors import UserError
from dispatcher.safe_text import safe_text
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, note, print_json, print_table, say

if TYPE_CHECKING:
    from dispatcher.operations.answers import ModelAnswered, ModelInput

#: Bytes of a request, and of a file in one.
_MOST_BYTES: Final = 32 << 20

#: Scores that are shown, the highest first.
_SHOWN: Final = 20

_BAR: Final = 30


def infer(
    trial: Trial,
    request: Annotated[
        str,
        typer.Argument(
            metavar="REQUEST",
            help="JSON text of an object, @FILE with it, or - to read it from stdin.",
            show_default=False,
        ),
    ] = "",
    number: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="A number. May be repeated.", show_default=False),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TEXT", help="A text. May be repeated.", show_default=False),
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="An image file, also for a field that is a drawing. May be repeated.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.1, max=300, help="Time for the answer, without loading."
        ),
    ] = 30.0,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory of the model; half of the machine's if not given.",
            show_default=False,
        ),
    ] = None,
    experiment: OfExperiment = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Ask a trial's trained model, by the function `infer` in the trials' code.

    It runs in a process of its own, in the trials' folder and with their environment, and needs no
    head. `bequeath trial inputs TRIAL` lists the fields of a request.
    """
    from dispatcher.operations.arguments import AskModel
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import INFER

    wanted = _read(request) if request else {}
    for each in number or ():
        name, value = _pair(each, "--number")
        wanted[name] = _number(value)
    for each in text or ():
        name, wanted_text = _pair(each, "--text")
        wanted[name] = wanted_text
    for each in image or ():
        name, file = _pair(each, "--image")
        wanted[name] = {"base64": base64.b64encode(_bytes_of(file)).decode()}
    context = context_for("infer", folder)
    if memory is not None:
        from dataclasses import replace

        context = replace(context, model_memory=_size(memory))
    wish = AskModel(request=wanted, timeout_s=timeout)
    answer = perform(INFER, context, wish, experiment=experiment, trial=trial)
    if as_json:
        print_json(answer)
    else:
        _show(answer)


def inputs(
    trial: Trial, experiment: OfExperiment = None, folder: Folder = None, as_json: Json = False
) -> None:
    """List the fields of a request to a trial's trained model; nothing of its code is run."""
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import INFER_INPUTS

    context = context_for("trial inputs", folder)
    answer = perform(INFER_INPUTS, context, experiment=experiment, trial=trial)
    if as_json:
        print_json(answer)
    elif not answer.available:
        raise UserError(answer.why, hint=answer.hint)
    elif answer.inputs is None:
        note("the trials' code does not say what a request holds: it may be any JSON object")
    else:
        columns = (
            Column("field"), Column("kind"), Column("size"), Column("default", shrink=True),
            Column("limits"), Column("what", shrink=True),
        )  # fmt: skip
        rows = [
            (
                safe_text(one.name),
                one.kind,
                f"{one.width} × {one.height}" if one.kind == "drawing" else formatting.NOTHING,
                formatting.NOTHING
                if one.default is None
                else safe_text(json.dumps(one.default, ensure_ascii=False)),
                _limits(one),
                safe_text(one.label),
            )
            for one in answer.inputs
        ]
        print_table(columns, rows)


def _limits(one: ModelInput) -> str:
    """Return what a number may be; a dash where there is no limit."""
    if one.minimum is None:
        return formatting.NOTHING if one.maximum is None else f"≤ {one.maximum:g}"
    return f"≥ {one.minimum:g}" if one.maximum is None else f"{one.minimum:g} to {one.maximum:g}"


def _show(answer: ModelAnswered) -> None:
    """Print an answer: what it is, and scores as bars; anything else as JSON."""
    value = answer.answer
    if answer.printed.strip():
        note(f"it printed: {safe_text(answer.printed.strip())}")
    scores = value.get("scores") if isinstance(value, dict) else None
    if isinstance(value, dict) and "answer" in value and _are_scores(scores):
        rest = {k: v for k, v in value.items() if k not in ("answer", "scores")}
        _say_value(value["answer"])
        _show_scores(scores)
        if rest:
            _say_value(rest)
    else:
        _say_value(value)
    loaded = f", loading it {formatting.duration(answer.loaded_s)}" if answer.loaded_s else ""
    note(f"it took {formatting.duration(answer.took_s)}{loaded}")


def _show_scores(scores: Any) -> None:
    highest = sorted(scores.items(), key=lambda one: -one[1])
    most = max(0.0, highest[0][1]) if highest else 0.0
    rows = [
        (
            safe_text(name),
            formatting.number(value),
            "█" * round(_BAR * value / most) if most > 0 and value > 0 else "",
        )
        for name, value in highest[:_SHOWN]
    ]
    print_table((Column("label"), Column("score", right=True), Column("")), rows)


def _are_scores(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(one, int | float) and not isinstance(one, bool) for one in value.values()
    )


def _say_value(value: Any) -> None:
    """Print a text as it is, and anything else as JSON that can be read."""
    if isinstance(value, str):
        say(value)
    else:
        print_json(value)


def _pair(typed: str, option: str) -> tuple[str, str]:
    name, mark, value = typed.partition("=")
    if not mark or not name:
        raise typer.BadParameter(f"{typed!r} is not NAME=VALUE", param_hint=f"'{option}'")
    return name, value


def _number(text: str) -> float:
    try:
        number = json.loads(text)
    except ValueError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise typer.BadParameter(f"{text!r} is no number", param_hint="'--number'")
    return number


def _size(text: str) -> int:
    from dispatcher.experiment.quantities import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--memory'") from error


def _bytes_of(file: str) -> bytes:
    try:
        with Path(file).expanduser().open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=file) from error
    if len(content) > _MOST_BYTES:
        raise UserError(f"the file has more than {_MOST_BYTES >> 20} MiB", where=file)
    return content


def _read(typed: str) -> dict[str, Any]:
    where = "REQUEST"
    try:
        if typed == "-":
            where, content = "stdin", sys.stdin.buffer.read(_MOST_BYTES + 1)
        elif typed.startswith("@"):
            where, content = typed[1:], _bytes_of(typed[1:])
        else:
            content = typed.encode()
        if len(content) > _MOST_BYTES:
            raise UserError(f"a request has {_MOST_BYTES >> 20} MiB at most", where=where)
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"no JSON can be read: {error}",
            hint="""write e.g. '{"lr": 0.01}', @FILE, or flags such as --number lr=0.01""",
            where=where,
        ) from error
    if not isinstance(values, dict):
        raise UserError("a request is a JSON object", where=where)
    return values
