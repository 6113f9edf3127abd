"""The lives of trials in columns, as a page holds them."""

from __future__ import annotations

from typing import Any

from dispatcher import queries
from dispatcher.queries import ExperimentReader


def lives_in_columns(reader: ExperimentReader) -> dict[str, Any]:
    """Return the lives of all trials: when each was proposed, and from when to when it ran.

    When it was asked for, and when it ended, stands in the table. Times are rounded to
    milliseconds; an end that is null has not come.
    """
    lives = queries.history(reader)
    spans = [(one.trial, span) for one in lives.trials for span in one.spans]
    return {
        "experiment": reader.id,
        "began": lives.began,
        "until": lives.until,
        "trials": [one.trial for one in lives.trials],
        "proposed": [_rounded(one.proposed) for one in lives.trials],
        "spans": {
            "trial": [trial for trial, _ in spans],
            "began": [_rounded(span.began) for _, span in spans],
            "ended": [_rounded(span.ended) for _, span in spans],
        },
        "notes": lives.notes,
    }


def _rounded(time: float | None) -> float | None:
    return None if time is None else round(time, 3)
