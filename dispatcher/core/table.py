"""The table of which event is legal in which state of its trial. Legality lives here and nowhere
else.

``LEGAL`` lists where an event has its effect; ``LATE`` where it is recorded and not counted,
because it crossed with a decision of ours. Anywhere else it is an
:class:`~dispatcher.errors.InvalidTransition` and nothing changes. Events of a superseded attempt
are late in every state (promise 3).
"""

from dispatcher.core import events as e
from dispatcher.core.model import Outcome, Trial
from dispatcher.core.model import TrialState as S

ANY = frozenset(S)
IN_TUNER = frozenset({S.OPEN, S.BLOCKED})
GONE = frozenset({S.ENDED, S.PARKED})

LEGAL: dict[type, frozenset[S]] = {
    e.WaitStarted: IN_TUNER,
    e.WaitGivenUp: frozenset({S.BLOCKED}),
    e.ForeignWaitSeen: frozenset({S.OPEN}),
    e.ForeignWaitOver: frozenset({S.BLOCKED}),
    e.Proposed: IN_TUNER,
    e.RequestFailed: IN_TUNER,
    e.ResultDelivered: frozenset({S.DELIVERING}),
    e.DeliveryStandsStill: frozenset({S.DELIVERING}),
    e.EndDelivered: frozenset({S.DELIVERING}),
    e.AttemptStarted: frozenset({S.RUNNING}),
    e.MetricReported: frozenset({S.RUNNING}),
    e.LastMetricKept: frozenset({S.RUNNING}),
    e.FinalReported: frozenset({S.RUNNING}),
    e.WeightsPublished: frozenset({S.RUNNING}),
    e.VersionOffered: frozenset({S.RUNNING}),
    e.AttemptEnded: frozenset({S.RUNNING}),
    e.TrialStopRequested: frozenset(
        {S.OPEN, S.BLOCKED, S.PARKED, S.HELD, S.QUEUED, S.RUNNING, S.BACKOFF}
    ),
}

LATE: dict[type, frozenset[S]] = {
    e.WaitStarted: GONE,
    e.WaitGivenUp: ANY - {S.BLOCKED},  # crossed with the gate
    e.ForeignWaitSeen: ANY - {S.OPEN},
    e.ForeignWaitOver: ANY - {S.BLOCKED},
    e.Proposed: GONE,
    e.RequestFailed: GONE,
    e.ResultDelivered: frozenset(),
    e.DeliveryStandsStill: ANY - {S.DELIVERING},
    e.EndDelivered: frozenset(),
    e.AttemptStarted: ANY - {S.RUNNING},
    e.MetricReported: ANY - {S.RUNNING},
    e.LastMetricKept: ANY - {S.RUNNING},
    e.FinalReported: ANY - {S.RUNNING},
    e.WeightsPublished: ANY - {S.RUNNING},
    e.VersionOffered: ANY - {S.RUNNING},
    e.AttemptEnded: ANY - {S.RUNNING},
    e.TrialStopRequested: frozenset({S.DELIVERING, S.ENDED}),
}

#: Reports of the tuner's process. While none is ready they come from one that is gone: its memory
#: went with it, and its successor gets all requests and results again.
TUNER_EVENTS = (
    e.WaitStarted,
    e.WaitGivenUp,
    e.ForeignWaitSeen,
    e.ForeignWaitOver,
    e.Proposed,
    e.RequestFailed,
    e.ResultDelivered,
    e.EndDelivered,
)

#: Events after which there is no more room on any worker than before: if nothing that waits had
#: a place, it has none now. What comes into the queue, or leaves it, says so itself.
FREES_NOTHING = (
    e.AttemptStarted,
    e.LastMetricKept,
    e.FinalReported,
    e.WeightsPublished,
    e.VersionOffered,
    e.VersionsHeld,
    e.StoresReviewed,
    e.ResultDelivered,
    e.EndDelivered,
    e.DeliveryStandsStill,
    e.Proposed,
    e.RequestFailed,
    e.TrialSubmitted,
    e.WaitStarted,
    e.WaitGivenUp,
    e.ForeignWaitSeen,
    e.ForeignWaitOver,
)

#: Events that speak for one attempt: counted for the newest attempt only.
ATTEMPT_EVENTS = (
    e.AttemptStarted,
    e.MetricReported,
    e.LastMetricKept,
    e.FinalReported,
    e.WeightsPublished,
    e.VersionOffered,
    e.AttemptEnded,
)


def comes_of_a_kill(trial: Trial, event: object) -> bool:
    """Whether this is the answer of a request that was killed before."""
    if trial.state is not S.ENDED or trial.outcome is not Outcome.NO_TRIAL:
        return False
    nonsense = isinstance(event, e.RequestFailed) and event.kind is e.RequestEnd.NONSENSE
    return trial.kill_reason is not None and (nonsense or isinstance(event, e.Proposed))


def objection(trial: Trial, event: object) -> str:
    """Why a trial in a legal state cannot take the event all the same; empty if it can.

    Result, then end, then gate, each once: DELIVERING is one state for both calls, so their order
    is checked here (promises 1 and 2).
    """
    owed = trial.result is not None and not trial.result_delivered
    if isinstance(event, e.ResultDelivered) and not owed:
        return "its result was delivered before" if trial.result_delivered else "it has no result"
    if isinstance(event, e.EndDelivered) and owed:
        return "its result was not delivered yet (promise 1)"
    return ""
