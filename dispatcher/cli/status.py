"""``bequeath status`` and ``bequeath why``: how an experiment stands, whether or not it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dispatcher.cli.arguments import Experiment, Folder, Json, context_for
from dispatcher.folders.studies import way_on
from dispatcher.live_view.scene import ends_of_workers, troubles_beside, ways_of_workers
from dispatcher.safe_text import safe_text
from dispatcher.terminal import formatting
from dispatcher.terminal.console import heading, print_facts, print_json, say
from dispatcher.terminal.notes import print_annotations

if TYPE_CHECKING:
    from dispatcher.control.snapshot import HeadSnapshot
    from dispatcher.sinks.standing import SinkStanding


def status(experiment: Experiment = None, folder: Folder = None, as_json: Json = False) -> None:
    """Show the state of an experiment: phase, trials, best, rate, time left.

    Without EXPERIMENT the one that runs is meant, or the newest.
    """
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import STATUS

    standing = perform(STATUS, context_for("status", folder), experiment=experiment)
    if as_json:
        print_json(standing)
        return
    summary, snapshot = standing.experiment, standing.head
    state = snapshot.phase if snapshot is not None else summary.status.value
    say(heading(f"{summary.name}  {state}"))
    print_facts([*_facts(summary, snapshot), *map(_sink, standing.sinks)])
    print_annotations(summary.tags, starred=summary.starred, notes=summary.notes)


def _facts(summary: Any, snapshot: HeadSnapshot | None) -> list[tuple[str, str]]:
    from dispatcher.experiments.why import in_one_line

    limit = f" of {summary.max_trials}" if summary.max_trials is not None else ""
    facts = [("id", summary.id), ("folder", summary.folder)]
    if summary.phase_reason:
        facts.append(("reason", in_one_line(summary.phase_reason)))
    facts.append(("began", f"{formatting.moment(summary.created_at)} UTC"))
    facts.append(("trials", f"{summary.ended}{limit} over{_outcomes(summary)}"))
    if snapshot is not None:
        facts.append(("slots", f"{snapshot.counts.running} of {snapshot.slots} busy"))
        facts.append(("why", snapshot.why.text))
        if ways := ways_of_workers(snapshot):
            facts.append(("ways", ways))
        facts.extend(("ends", text) for text in ends_of_workers(snapshot))
        facts.extend(("trouble", text) for text in troubles_beside(snapshot))
        refused = _refused(snapshot)
        if refused:
            facts.append(("refused", refused))
    if summary.best is not None:
        facts.append(("best", f"{formatting.number(summary.best.value)}, trial {summary.best.id}"))
    if summary.rate is not None:
        facts.append(("rate", f"{60 * summary.rate:.3g} trials a minute"))
    if summary.time_left_s is not None:
        facts.append(("left", f"about {formatting.duration(summary.time_left_s)}"))
    facts.append(("spent", f"{formatting.duration(summary.wall_s)} in trials"))
    if summary.weights_bytes:
        facts.append(("weights", formatting.size(summary.weights_bytes)))
    elif summary.unsaved:
        text = "none saved at the paths that the tuner named: no trial can start from another"
        facts.append(("weights", text))
    if summary.pid is not None:
        facts.append(("head", f"process {summary.pid} on {summary.host}"))
    elif summary.status in ("stopped", "failed", "interrupted", "created"):
        facts.append(("go on", way_on(Path(summary.folder))))
    return facts


def _sink(one: SinkStanding) -> tuple[str, str]:
    """Say in one line how far a sink is, and what is in the way."""
    lag = f"{one.behind} trials behind" if one.behind else "up to date"
    if one.error:
        since = "" if one.heard_at is None else f" since {formatting.moment(one.heard_at)} UTC"
        lag = f"{lag}{since}: {one.error}"
    return "sink", f"{one.name}: {lag}"


def _outcomes(summary: Any) -> str:
    outcomes = formatting.outcomes(summary.outcomes)
    return f": {outcomes}" if outcomes else ""


def _refused(snapshot: HeadSnapshot) -> str:
    """Return the messages that head and agent refused, counted by reason."""
    return ", ".join(
        f"{who}: {reason} {many}"
        for who, counts in snapshot.refused.items()
        for reason, many in counts.items()
    )


def why(experiment: Experiment = None, folder: Folder = None, as_json: Json = False) -> None:
    """Explain in one sentence why nothing, or not more, is running.

    `--json` adds the cause as a value of an enumeration.
    """
    from dispatcher.operations.operation import perform
    from dispatcher.operations.table import WHY

    answer = perform(WHY, context_for("why", folder), experiment=experiment)
    if as_json:
        print_json(answer)
    else:
        say(safe_text(answer.text))
