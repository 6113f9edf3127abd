"""``bequeath experiment import``: results of another experiment, for the tuner of this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json
from dispatcher.errors import UserError
from dispatcher.terminal.console import print_json, say

Data = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="JSON: a list of objects with `parameter` and `value`, as "
        "`bequeath nni experiment export` writes them.",
        show_default=False,
    ),
]


def import_results(
    file: Data, experiment: Experiment = None, folder: Folder = None, as_json: Json = False
) -> None:
    """Give the tuner of a running experiment the results of another one.

    They create no trials. The tuner receives each of them once, in one order with its own results,
    and again when it is rebuilt; the experiment's log names a tuner that cannot use them.
    """
    from dispatcher.control.imported import results_text
    from dispatcher.experiments.handle import ExperimentHandle, Purpose

    rows = _read(file)
    try:
        results_text(rows)  # checks all of them before the first is sent
    except UserError as error:
        raise UserError(error.message, hint=error.hint, where=str(file)) from error
    handle = ExperimentHandle.find(experiment, folder, Purpose.RUNNING)
    handle.import_results(rows)
    if as_json:
        print_json({"experiment": handle.id, "rows": len(rows)})
    else:
        say(f"{len(rows)} results for the tuner of {handle.id}")


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        rows = json.loads(file.expanduser().read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(file)) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"is not JSON: {error}", where=str(file)) from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(
            "must be a list of objects",
            hint="""write '[{"parameter": {…}, "value": 0.9}, …]'""",
            where=str(file),
        )
    return rows
