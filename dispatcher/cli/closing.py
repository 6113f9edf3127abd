"""The summary of an experiment in the foreground that is over."""

from __future__ import annotations

from dispatcher import queries
from dispatcher.core.model import Phase
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.terminal import formatting
from dispatcher.terminal.console import heading, print_json, say
from dispatcher.terminal.leaderboard import print_front, print_leaders

_LEADERS = 5


def print_closing(handle: ExperimentHandle, phase: Phase, took_s: float, *, as_json: bool) -> None:
    """Print the outcome, the best trials, and useful next commands.

    Args:
        handle: on the experiment.
        phase: its last phase.
        took_s: time that it was led, in seconds.
        as_json: print one JSON document instead.
    """
    summary = handle.status()
    best, objectives = handle.leaders(_LEADERS)
    if as_json:
        print_json({"experiment": summary.to_json(), "best": [one.to_json() for one in best]})
        return
    say(heading(f"{summary.name} {phase.value}") + _because(summary))
    say(_counts(summary, took_s))
    if best:
        say()
        if objectives:
            print_front(best, list(objectives))
        else:
            print_leaders(best)
    say()
    for line in _next(summary, phase, inherited=handle.inherits):
        say(line)


def _because(summary: queries.ExperimentSummary) -> str:
    return f": {summary.phase_reason}" if summary.phase_reason else ""


def _counts(summary: queries.ExperimentSummary, took_s: float) -> str:
    outcomes = formatting.outcomes(summary.outcomes)
    trials = formatting.count(summary.ended, "trial") + (f": {outcomes}" if outcomes else "")
    untold = summary.states.get("delivering", 0)
    beside = f", and {formatting.count(untold, 'trial')} with an end that the tuner has not taken"
    return f"{trials}{beside if untold else ''}; {formatting.duration(took_s)} in this run"


def _next(summary: queries.ExperimentSummary, phase: Phase, *, inherited: bool) -> list[str]:
    lines = []
    if phase in (Phase.STOPPED, Phase.FAILED):
        lines.append(f"go on with               bequeath resume {summary.id}")
    if inherited:
        lines.append(f"who inherited from whom  bequeath lineage {summary.id}")
    if summary.outcomes.get("failed"):
        lines.append(f"what failed              bequeath trial ls {summary.id} --failed")
    return lines
