"""The summary of an experiment that no head leads any more, or what went wrong with it."""

from __future__ import annotations

from dispatcher import queries
from dispatcher.errors import PassingBackendError, UserError
from dispatcher.folders.experiment_folder import ExperimentFolder


def outcome_of(
    summary: queries.ExperimentSummary, place: ExperimentFolder
) -> queries.ExperimentSummary:
    """Return the summary of an experiment that has ended well.

    Raises:
        UserError: the experiment failed; its reason.
        PassingBackendError: the head ended without winding up.
    """
    status = queries.ExperimentStatus
    if summary.status is status.FAILED:
        raise UserError(
            f"the experiment failed: {summary.phase_reason}",
            hint="mend it, then run() goes on with it",
            where=summary.id,
        )
    if summary.status is status.INTERRUPTED:
        raise PassingBackendError(
            "the head ended without winding up",
            hint="run() goes on from the last committed state",
            where=str(place.head_stderr),
        )
    return summary
