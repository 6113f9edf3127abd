"""Short texts and tables of an experiment and its trials, as a notebook shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dispatcher.queries import TrialSummary
from dispatcher.queries.as_html import table

if TYPE_CHECKING:
    from dispatcher.api import Experiment

#: Trials, and parameters of each, in a table; the others are counted.
MOST_ROWS: Final = 20
MOST_PARAMETERS: Final = 8


class ListedTrials(list[TrialSummary]):
    """A list of trials that a notebook shows as a table, and a prompt in a few lines."""

    def __repr__(self) -> str:
        shown = [repr(each) for each in self[:MOST_ROWS]]
        if len(self) > MOST_ROWS:
            shown.append(f"… and {len(self) - MOST_ROWS:,} more")
        return f"[{', '.join(shown)}]"

    def _repr_html_(self) -> str:
        return trials_table(self, f"{len(self):,} trials")


def trials_table(trials: Sequence[TrialSummary], caption: str = "") -> str:
    """Return the first trials as a table of HTML."""
    shown = trials[:MOST_ROWS]
    names = list(dict.fromkeys(name for one in shown for name in one.named_parameters))
    columns = names[:MOST_PARAMETERS]
    rows = [
        (
            one.id,
            one.outcome or one.state,
            one.value,
            one.parent,
            *(one.named_parameters.get(name) for name in columns),
        )
        for one in shown
    ]
    if len(trials) > MOST_ROWS:
        caption += f", the first {MOST_ROWS} of them"
    if len(names) > len(columns):
        caption += f", {len(names) - len(columns)} more parameters each"
    return table(rows, ("trial", "state", "result", "parent", *columns), caption)


def short(experiment: Experiment, *, started: bool) -> str:
    """Return an experiment in one line."""
    if not started:
        return f"<Experiment {experiment.config.experiment_name!r}, not started>"
    summary = experiment.status()
    best = f", best {summary.best.value:.6g}" if summary.best is not None else ""
    return f"<Experiment {summary.id} {summary.status}, {summary.ended} trials over{best}>"


def as_table(experiment: Experiment, *, started: bool) -> str:
    """Return an experiment as tables of HTML: how it stands, and its best trials."""
    if not started:
        config = experiment.config
        rows = [
            ("status", "not started"),
            ("tuner", config.tuner.name or config.tuner.class_name),
            ("trials", config.max_trial_number),
            ("at once", config.trial_concurrency),
        ]
        return table([row for row in rows if row[1]], caption=config.experiment_name)
    leaders = experiment.leaders()
    best = trials_table(leaders, "the best") if leaders else ""
    return f"{experiment.status()._repr_html_()}{best}"
