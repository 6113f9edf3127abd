"""``bequeath trial``: the trials of an experiment, one by one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json, OfExperiment, Trial, context_for
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.cli.trial.table import MOST_ROWS, Columns, Where, check_limit, table_of
from dispatcher.errors import UserError
from dispatcher.safe_text import safe_text
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
from dispatcher.terminal.notes import print_annotations

if TYPE_CHECKING:
    from dispatcher.operations.answers import OneTrial

TRIAL: Table = {
    "ls": CommandEntry("cli.trial.verbs:ls", "List trials."),
    "show": CommandEntry("cli.trial.verbs:show", "Everything about one trial."),
    "log": CommandEntry("cli.trial.log:log", "What a trial has printed."),
    "files": CommandEntry(
        "cli.trial.files:files", "The files that a trial has left, wherever it ran."
    ),
    "fetch": CommandEntry("cli.trial.files:fetch", "Bring files of a trial here."),
    "shell": CommandEntry("cli.trial.files:shell", "Open a shell where a trial runs."),
    "tensors": CommandEntry(
        "cli.trial.tensors:tensors", "Which tensors of a trial's weights came from whom."
    ),
    "kill": CommandEntry("cli.trial.change:kill", "End a running or waiting trial."),
    "inputs": CommandEntry("cli.infer:inputs", "What a request to a trial's trained model holds."),
    "submit": CommandEntry("cli.trial.change:submit", "Run a trial with parameters of your own."),
    "note": CommandEntry("cli.notes:note_trial", "Write a note beside a trial."),
    "tag": CommandEntry("cli.notes:tag_trial", "Give a trial tags."),
    "star": CommandEntry("cli.notes:star_trial", "Give a trial a star."),
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
    where: Where = "",
    sort: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="id, value, state, started, ended, duration, or a parameter or column as in a "
            "CONDITION.",
        ),
    ] = "id",
    reverse: Annotated[bool, typer.Option("--reverse", "-r", help="The other way round.")] = False,
    columns: Columns = "",
    many: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            "--number",
            metavar="NUMBER",
            callback=check_limit,
            help=f"At most this many, 0 for all; a table has {MOST_ROWS:,} if not given.",
        ),
    ] = None,
    no_pager: Annotated[
        bool,
        typer.Option("--no-pager", help=f"Print {MOST_ROWS:,} rows and more to the terminal, too."),
    ] = False,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """List trials with state, result, parent and parameters. By value, the best come first.

    A CONDITION compares parameters (`lr`, `blocks[2].kernel`), columns of `--json`, and values of
    the result (`metrics.loss`) by `=`, `!=`, `<`, `<=`, `>`, `>=`, `~` (the text contains it) or
    `in (…, …)`, with `and`, `or`, `not` and brackets; a text of several words stands in quotes.
    `tag=good` holds if one of the trial's tags is that, `starred=true` if it has a star.

    A long table goes through a pager on a terminal (`PAGER`). `--json` has all trials.
    """
    from dispatcher.operations.arguments import ListTrials
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import TRIAL_LIST

    wanted = ListTrials(
        state=_known(state or []),
        failed=failed,
        live=live,
        parent=parent,
        where=where,
        sort=sort,
        reverse=reverse,
        columns=columns,
        limit=MOST_ROWS + 1 if many is None and not as_json else many or None,
    )
    answer = perform(TRIAL_LIST, context_for("trial ls", folder), wanted, experiment=experiment)
    if as_json:
        print_json(answer)
        return
    if not answer.trials:
        asked = state or failed or live or parent is not None or where
        note(f"{answer.experiment} has no {'such trial' if asked else 'trials yet'}")
        return
    kept = MOST_ROWS if many is None else None
    titles, rows = table_of(columns, answer.trials[:kept], answer.cells[:kept])
    print_table(titles, rows, paged=len(rows) >= MOST_ROWS and not no_pager)
    if kept is not None and len(answer.trials) > kept:
        note(f"the first {kept:,} trials; --limit 0 shows all, --where and --sort choose")


def _known(states: list[str]) -> tuple[str, ...]:
    """Return the states; a word that is none is a fault of the command line."""
    from dispatcher.operations.trials import state_of

    try:
        return tuple(state_of(word) for word in states)
    except UserError as error:
        raise typer.BadParameter(error.message, param_hint="'--state'") from error


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
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import TRIAL_SHOW

    context = context_for("trial show", folder)
    detail = perform(TRIAL_SHOW, context, experiment=experiment, trial=trial)
    if as_json:
        print_json(detail)
        return
    one = detail.trial
    place = context.handle(experiment, TRIAL_SHOW.purpose).place
    say(heading(f"trial {one.id}  {one.outcome or one.state}"))
    print_facts([*_facts(detail), ("folder", str(place.trial(one.id)))])
    print_annotations(one.tags, starred=one.starred, notes=detail.notes)
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


def _facts(detail: OneTrial) -> list[tuple[str, str]]:
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


def _show_attempts(detail: OneTrial) -> None:
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


def _show_metrics(detail: OneTrial, *, everything: bool) -> None:
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
