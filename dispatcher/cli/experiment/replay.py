"""``bequeath experiment replay``: how the journal leads to where a trial stands."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json, find_handle
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, print_facts, print_json, print_table, say

if TYPE_CHECKING:
    from dispatcher.core.ids import TrialId
    from dispatcher.store.replay.refused import RefusedEvents
    from dispatcher.store.replay.stepping import SteppedPast, SteppedRow


def replay(
    experiment: Experiment = None,
    until: Annotated[
        int | None,
        typer.Option(
            "--until", metavar="ROW", min=1, help="The last row to apply; all if not given."
        ),
    ] = None,
    trial: Annotated[
        int | None,
        typer.Option("--trial", metavar="TRIAL", min=0, help="Show what concerns this trial."),
    ] = None,
    then: Annotated[
        Path | None,
        typer.Option(
            "--then",
            metavar="FILE",
            help="Apply the events of such a report at last: the file, or one below the "
            "experiment's folder, as reports/refused-812.json.",
        ),
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Apply an experiment's journal again, row by row, and show how a trial moved.

    Without a trial, events are counted. Nothing of the experiment is changed, and a head may be
    leading it. When a head reports an event that it had to refuse, it names the command that shows
    the refusal again. Exit code 1 if an event is refused.
    """
    from dispatcher.core.ids import TrialId
    from dispatcher.store.copying import opened_to_read
    from dispatcher.store.replay.stepping import step_through

    handle = find_handle(experiment, folder)
    report = None if then is None else _report(handle.folder, then)
    if report is not None:
        until = report.until if until is None else until
        trial = report.trial if trial is None else trial
    number = None if trial is None else TrialId(trial)
    events = () if report is None else report.events
    with opened_to_read(handle.place.journal) as journal:
        stepped = step_through(journal, until=until, trial=number, then=events)
    _demand_known(stepped, number)
    if as_json:
        print_json({"experiment": handle.id, **_document(stepped, number)})
    else:
        _show(handle.id, stepped, number)
    if stepped.refused:
        raise typer.Exit(ExitCode.GENERAL)


def _demand_known(stepped: SteppedPast, trial: TrialId | None) -> None:
    """Raise ``UserError`` for a trial that the whole journal does not know."""
    from dispatcher.errors import UserError

    if trial is None or stepped.state is None or stepped.until < stepped.newest:
        return
    if not (stepped.refused or stepped.rows or trial in stepped.state.trials):
        raise UserError(f"there is no trial {trial}")


def _report(folder: Path, then: Path) -> RefusedEvents:
    from dispatcher.store.replay.refused import read_report

    return read_report(then if then.exists() else folder / then)


def _document(stepped: SteppedPast, trial: TrialId | None) -> dict[str, Any]:
    return {
        "first": stepped.first,
        "until": stepped.until,
        "newest": stepped.newest,
        "trial": trial,
        "kinds": stepped.kinds,
        "events": [_event(row) for row in stepped.rows],
        "state": _state(stepped, trial),
        "refused": stepped.refused,
    }


def _event(row: SteppedRow) -> dict[str, Any]:
    from dispatcher.core.arrows import name_of
    from dispatcher.store.replay.describing import plain

    return {
        "row": row.number,
        "at": row.at,
        "kind": type(row.event).__name__,
        "fields": plain(row.event),
        "counted": row.counted,
        "moves": [
            {
                "from": None if one.before is None else one.before.name,
                "to": one.after.name,
                "by": name_of(one.trigger),
            }
            for one in row.moves
        ],
    }


def _state(stepped: SteppedPast, trial: TrialId | None) -> dict[str, Any] | None:
    from dispatcher.store.replay.describing import plain

    if stepped.state is None:
        return None
    if trial is not None:
        record = stepped.state.trials.get(trial)
        return None if record is None else plain(record) | {"state": record.state.name}
    states = Counter(one.state.name for one in stepped.state.trials.values())
    return {"phase": stepped.state.phase.value, "trials": states}


def _show(ident: str, stepped: SteppedPast, trial: TrialId | None) -> None:
    from dispatcher.store.replay.describing import event_text, trial_text

    which = "" if trial is None else f", of trial {trial}"
    say(f"{ident}: rows {stepped.first} to {stepped.until} of {stepped.newest}{which}")
    if trial is None:
        kinds = ((kind, str(many)) for kind, many in stepped.kinds.most_common())
        print_table([Column("event"), Column("times", right=True)], kinds)
        state = _state(stepped, None) or {"phase": formatting.NOTHING, "trials": {}}
        states = ", ".join(f"{many} {name}" for name, many in state["trials"].items())
        print_facts([("phase", state["phase"]), ("trials", states or formatting.NOTHING)])
    else:
        columns = [
            Column("row", right=True),
            Column("time (UTC)"),
            Column("event", shrink=True),
            Column(f"trial {trial}"),
        ]
        lines = [
            (
                "then" if row.number is None else str(row.number),
                formatting.moment(row.at),
                f"{event_text(row.event, trial)}{'' if row.counted else ' (without effect)'}",
                _moves_text(row),
            )
            for row in stepped.rows
        ]
        print_table(columns, lines)
    if stepped.state is not None and trial is not None:
        say(f"after row {stepped.until}: {trial_text(stepped.state, trial)}")
    if stepped.refused:
        say(stepped.refused)


def _moves_text(row: SteppedRow) -> str:
    """Return all moves as one line: ``RUNNING → BACKOFF → QUEUED (back-off over)``. Those that name
    nothing follow from the event itself."""
    from dispatcher.core.arrows import name_of

    steps = ["new" if one.before is None else one.before.name for one in row.moves[:1]]
    for one in row.moves:
        own = one.trigger is type(row.event)
        steps.append(one.after.name if own else f"{one.after.name} ({name_of(one.trigger)})")
    return " → ".join(steps)
