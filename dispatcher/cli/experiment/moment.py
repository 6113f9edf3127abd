"""``bequeath experiment at``: a search as it was at a moment."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from dispatcher.cli.arguments import Folder, Json, OfExperiment, context_for
from dispatcher.safe_text import safe_text
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, heading, note, print_json, print_table, say


def at(
    time: Annotated[
        str,
        typer.Argument(
            metavar="TIME",
            help="As 2026-11-23T21:40 or '2026-11-23 21:40:05' (UTC unless it names a zone), or "
            "seconds since the epoch.",
            show_default=False,
        ),
    ],
    experiment: OfExperiment = None,
    number: Annotated[
        int,
        typer.Option(
            "-n",
            "--number",
            metavar="NUMBER",
            min=0,
            max=10_000,
            help="Trials at most, the newest first.",
        ),
    ] = 20,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Show which trials existed, ran, waited and had ended at a moment, and the best until then."""
    from dispatcher.operations.arguments import MOST_TIME, LookBack
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import EXPERIMENT_AT

    moment = _seconds(time)
    if not 0 <= moment <= MOST_TIME:
        raise typer.BadParameter(f"{time!r} is no time of a search", param_hint="'TIME'")
    wanted = LookBack(time=moment, limit=number)
    found = perform(
        EXPERIMENT_AT, context_for("experiment at", folder), wanted, experiment=experiment
    )
    if as_json:
        print_json(found)
        return
    say(heading(f"{found.experiment}  {formatting.moment(found.time)} UTC"))
    words = {"open": "in the tuner", "queued": "waited", "running": "ran", "ended": "were over"}
    say(", ".join(f"{found.states[state]} {word}" for state, word in words.items()))
    if found.outcomes:
        say(", ".join(f"{many} {outcome}" for outcome, many in found.outcomes.items()))
    if found.best is not None:
        say(f"the best until then: trial {found.best}")
    if found.trials:
        say()
        columns = (Column("trial", right=True), Column("state"), Column("result", right=True),
                   Column("where"))  # fmt: skip
        rows = [
            (
                str(one.trial),
                one.outcome or one.state,
                formatting.number(one.value),
                safe_text(one.worker or formatting.NOTHING),
            )
            for one in found.trials
        ]
        print_table(columns, rows)
    if found.more:
        say(f"… the newest {len(found.trials)}; -n shows more")
    for sentence in found.notes:
        note(sentence)


def _seconds(text: str) -> float:
    """Read a moment; seconds since the epoch."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no time; write it as 2026-11-23T21:40", param_hint="'TIME'"
        ) from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
