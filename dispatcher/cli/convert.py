"""``bequeath convert``: an experiment file of NNI's under our keys, with the reason for each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dispatcher.cli.arguments import ExperimentFile
from dispatcher.terminal.console import note, pass_on

Target = Annotated[
    str, typer.Option("--to", metavar="FORM", help="Form to convert to; there is 'native' only.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write there instead of printing; an existing file is not overwritten.",
        show_default=False,
    ),
]


def convert(file: ExperimentFile, to: Target = "native", output: Output = None) -> None:
    """Print an experiment file that was written for NNI under bequeath's own keys.

    A comment above each key says where it comes from and why. The original needs no
    converting: `bequeath run` takes it as it is. Exit code 3 if it has errors.
    """
    from dispatcher.errors import UserError
    from dispatcher.experiment.loader import converted

    if to != "native":
        raise typer.BadParameter(f"{to!r} is not known; there is 'native'", param_hint="'--to'")
    text = converted(file)
    if text is None:
        note(f"{file} has bequeath's own keys already")
        return
    if output is None:
        pass_on(text.rstrip("\n") + "\n")
        return
    try:
        with output.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise UserError(
            "exists already", hint="remove it, or name another", where=str(output)
        ) from None
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", where=str(output)) from error
    note(f"written to {output}")
