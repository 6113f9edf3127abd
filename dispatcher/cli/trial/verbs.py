"""``bequeath trial``: the trials of an experiment, one by one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json, OfExperiment, Trial
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.terminal import formatting
from dispatcher.terminal.console import (
    Column,
    heading,
    note,
    print_facts,
    print_json,
    print_table,
    say,
)
from dispatcher.terminal.safe_text import safe_text

if TYPE_CHECKING:
    from dispatcher.queries import TrialDetail, TrialSummary

TRIAL: Table = {
    "ls": CommandEntry("cli.trial.verbs:ls", "List trials."),
    "show": CommandEntry("cli.trial.verbs:show", "Everything about one trial."),
    "log": CommandEntry("cli.trial.log:log", "What a trial has printed."),
    "files": CommandEntry(
        "cli.trial.files:files", "The files that a trial has left, wherever it ran."
    ),
    "fetch": CommandEntry("cli.trial.files:fetch", "Bring files of a trial here."),
    "shell": CommandEntry("cli.trial.shell:shell", "Open a shell where a trial runs."),
    "kill": CommandEntry("cli.trial.change:kill", "End a running or waiting trial."),
    "submit": CommandEntry("cli.trial.change:submit", "Run a trial with parameters of your own."),
}

#: Metrics shown without ``--all-metrics``.
_METRICS = 10


def ls(
    experiment: Experiment = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATE",
            help="Only trials in this state, or that ended so: queued, running, succeeded, failed, "
            "killed, … May be repeated.",
            show_default=False,
        ),
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only trials that failed.")] = False,
    live: Annotated[bool, typer.Option("--live", help="Only trials that are not over.")] = False,
    parent: Annotated[
        int | None, typer.Option(metavar="TRIAL", help="Only children of this trial.")
    ] = None,
    sort: Annotated[
        str, typer.Option(metavar="COLUMN", help="id, value, state, started, ended or duration.")
    ] = "id",
    reverse: Annotated[bool, typer.Option("--reverse", "-r", help="The other way round.")] = False,
    many: Annotated[
        int | None,
        typer.Option("-n", "--number", metavar="NUMBER", min=1, help="At most this many."),
    ] = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """List trials with state, result, parent and parameters. By value, the best come first."""
    from dispatcher import queries
    from dispatcher.experiments.handle import ExperimentHandle

    wanted = queries.TrialFilter(
        shown=_states(state or []),
        outcomes=_FAILURES if failed else (),
        parent=parent,
        live=True if live else None,
    )
    by = queries.TrialSort.of(sort)
    handle = ExperimentHandle.find(experiment, folder)
    with handle.reading() as reader:
        downward = reader.mode.order == "DESC" if by is queries.TrialSort.VALUE else False
        order = not downward if reverse else downward
        trials = queries.list_trials(reader, wanted, sort=by, descending=order, limit=many)
    if as_json:
        print_json({"experiment": handle.id, "trials": [one.to_json() for one in trials]})
    elif trials:
        print_table(COLUMNS, [_row(one) for one in trials])
    else:
        note(f"{handle.id} has no such trial")


_FAILURES = ("failed", "timed out", "lost")

COLUMNS = (
    Column("trial", right=True),
    Column("state"),
    Column("result", right=True, style="bold"),
    Column("parent", right=True),
    Column("took", right=True),
    Column("parameters", shrink=True),
)


def _states(named: list[str]) -> tuple[str, ...]:
    from dispatcher.core.model import Outcome, TrialState

    known = [one.value for kind in (TrialState, Outcome) for one in kind]
    states = [word.lower().replace("-", " ").replace("_", " ") for word in named]
    for word in states:
        if word not in known:
            raise typer.BadParameter(
                f"{word!r} is no state; there are {', '.join(known)}", param_hint="'--state'"
            )
    return tuple(states)


def _row(one: TrialSummary) -> tuple[str, ...]:
    from dispatcher.terminal.leaderboard import paths_of

    tries = f" ({one.attempt} attempts)" if one.attempt > 1 else ""
    return (
        str(one.id),
        (one.outcome or one.state) + tries,
        formatting.number(one.value),
        formatting.NOTHING if one.parent is None else str(one.parent),
        # Added up as attempts end: there is none while the first attempt runs.
        formatting.duration(one.wall_s or None),
        formatting.parameters(one.named_parameters, without=paths_of(one)),
    )


def show(
    trial: Trial,
    experiment: OfExperiment = None,
    all_metrics: Annotated[
        bool,
        typer.Option("--all-metrics", help=f"Show all metrics, not only the newest {_METRICS}."),
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Show everything about one trial: result, parameters, attempts, metrics, kin, errors."""
    from dispatcher.experiments.handle import ExperimentHandle
    from dispatcher.folders.experiment_folder import ExperimentFolder

    handle = ExperimentHandle.find(experiment, folder)
    detail = handle.trial(trial)
    if as_json:
        print_json({"experiment": handle.id, **detail.to_json()})
        return
    one = detail.trial
    say(heading(f"trial {one.id}  {one.outcome or one.state}"))
    print_facts([*_facts(detail), ("folder", str(ExperimentFolder(handle.folder).trial(one.id)))])
    if one.named_parameters:
        say()
        say(heading("parameters"))
        print_facts(
            [
                (safe_text(key), formatting.value(value))
                for key, value in one.named_parameters.items()
            ]
        )
    _show_attempts(detail)
    _show_metrics(detail, everything=all_metrics)
    for title, text in (("error", one.error), ("error in the tuner", one.tuner_error)):
        if text:
            say()
            say(heading(title))
            for line in text.rstrip().splitlines():
                say(safe_text(line))


def _facts(detail: TrialDetail) -> list[tuple[str, str]]:
    one = detail.trial
    facts = [("result", formatting.NOTHING if one.result is None else json.dumps(one.result))]
    if one.parent is not None:
        facts.append(("parent", str(one.parent)))
    if detail.children:
        facts.append(("children", ", ".join(map(str, detail.children))))
    if one.by_hand:
        facts.append(("proposed", "by hand"))
    if one.gate is not None:
        through = f", through {', '.join(map(str, one.gate_chain))}" if one.gate_chain else ""
        facts.append(("gate", one.gate if one.gate == "open" else f"failed: {one.gate}{through}"))
    if one.weights_digest is not None:
        facts.append(("weights", f"{one.save_path}, {formatting.size(one.weights_bytes)}"))
    elif one.save_path is not None:
        facts.append(("weights", f"{one.save_path}, not committed"))
    if one.restore_path is not None:
        facts.append(("from", one.restore_path))
    facts.append(("asked", f"{formatting.moment(one.asked_at)} UTC"))
    facts.append(
        ("took", f"{formatting.duration(one.wall_s)}, {formatting.duration(one.cpu_s)} of CPU")
    )
    return facts


def _show_attempts(detail: TrialDetail) -> None:
    from dispatcher.core.failures import telling_line

    if not detail.attempts:
        return
    say()
    columns = (
        Column("attempt", right=True),
        Column("where"),
        Column("process", right=True),
        Column("took", right=True),
        Column("end"),
        Column("", shrink=True),
    )
    rows = [
        (
            str(one.number),
            one.worker or formatting.NOTHING,
            str(one.pid or formatting.NOTHING),
            formatting.duration(one.wall_s),
            _end(one.end_reason, one.exit_code, one.signal),
            telling_line(one.text or ""),
        )
        for one in detail.attempts
    ]
    print_table(columns, rows)


def _end(reason: str | None, exit_code: int | None, signal: int | None) -> str:
    if reason is None:
        return "running"
    if signal:
        return f"{reason} ({_signal(signal)})"
    return f"{reason} (exit code {exit_code})" if exit_code else reason


def _signal(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _show_metrics(detail: TrialDetail, *, everything: bool) -> None:
    metrics = detail.metrics
    shown = metrics if everything else metrics[-_METRICS:]
    if not shown:
        return
    say()
    columns = (Column("attempt", right=True), Column("metric", right=True), Column("at (UTC)"),
               Column("value", shrink=True))  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for one in shown:
        kind = "final" if one.final else str(one.seq)
        mark = "" if one.counted else "  (not counted: of a superseded attempt)"
        rows.append(
            (str(one.attempt), kind, formatting.moment(one.at), formatting.value(one.value) + mark)
        )
    print_table(columns, rows)
    if len(metrics) > len(shown):
        say(f"… {len(metrics) - len(shown)} before these; --all-metrics shows them")
