"""The lives of trials in columns, as a page holds them."""

from __future__ import annotations

from typing import Any

from dispatcher import queries
from dispatcher.queries import ExperimentReader


def lives_in_columns(reader: ExperimentReader) -> dict[str, Any]:
    """Return the lives of all trials: when each was proposed, and from when to when it ran.

    When it was asked for, and when it ended, stands in the table. An end that is
    null has not come.
    """
    lives = queries.history(reader)
    spans = [(one.trial, span) for one in lives.trials for span in one.spans]
    return {
        "experiment": reader.id,
        "began": lives.began,
        "until": lives.until,
        "trials": [one.trial for one in lives.trials],
        "proposed": [one.proposed for one in lives.trials],
        "spans": {
            "trial": [trial for trial, _ in spans],
            "began": [span.began for _, span in spans],
            "ended": [span.ended for _, span in spans],
        },
        "notes": lives.notes,
    }
