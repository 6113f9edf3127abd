"""The core's settings: the experiment file as plain numbers and strings."""

from dataclasses import dataclass, field
from enum import StrEnum

from dispatcher.core.resources import A_SLOT, Needs, WorkerRules

#: Seconds for which a worker is left out after trials failed there one after another, if the
#: file says nothing. It doubles each time its probe fails as well. A minute is what a full
#: scratch disk or a stuck driver needs at least; after an hour somebody has repaired it, or
#: nobody will.
QUARANTINE_S = 60.0
QUARANTINE_MAX_S = 3600.0


class TunerErrorPolicy(StrEnum):
    """The effect of an exception in a tuner method on the rest of the experiment."""

    FAIL = "fail"
    CONTINUE = "continue"
    RETRY = "retry"


class StallPolicy(StrEnum):
    """The policy for an experiment in which nothing can move any more."""

    FAIL = "fail"
    GROW = "grow"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits and policies of one experiment. Durations in seconds; None means no limit.

    ``substitute_result`` is the JSON text that stands in for the result of a trial which
    exits 0 without a final metric; ``silent_is_failure`` counts such a trial as failed.

    A rule that came later is off by default, and the next head turns it on with
    ``HeadStarted``: an older journal is replayed under the rules it was written under.
    """

    slots: int
    lookahead: int
    max_trials: int | None = None
    max_duration_s: float | None = None
    on_tuner_error: TunerErrorPolicy = TunerErrorPolicy.FAIL
    on_stall: StallPolicy = StallPolicy.FAIL
    stall_timeout_s: float = 300.0
    trial_retries: int = 1
    lost_retries: int = 5
    retry_backoff_s: float = 1.0
    retry_backoff_max_s: float = 300.0
    substitute_result: str | None = None
    silent_is_failure: bool = False
    assess: bool = False  # there is an assessor
    early_stop_keeps_result: bool = False
    trial_stop_grace_s: float = 10.0
    retries: dict[str, int] = field(default_factory=dict)  # by the value of an EndReason
    losses_at_once: bool = False  # the first loss of a trial waits for no back-off
    max_failed_in_a_row: int = 0  # trials; 0: no limit
    quarantine_after: int = 0  # different trials failed on a worker; 0: never
    workers: int = 1  # that take part; only when all of them are given up is nothing left
    quarantine_pause_s: float = QUARANTINE_S
    needs: Needs = A_SLOT  # of each trial that brings none of its own
    worker_rules: dict[str, WorkerRules] = field(default_factory=dict)  # by worker
    keep_versions: int = 0  # the newest of each shared store; 0: all
    keep_versions_of: dict[str, int] = field(default_factory=dict)  # by store; 0: all
    slots_follow: tuple[str, ...] = ()  # workers with as many slots as the experiment, always
    through_when_stopped: bool = False  # exit 0 with a result while all is stopped is success
    bounded_drain: bool = False  # a drain waits for the tuner, and not for ever
    end_dropped: bool = False  # the tuner gets the end of parameters that nobody will run
    placed_anew: bool = False  # what never began, where the GPUs it was given are not offered now
    asks_at_most: int = 0  # requests between asked and delivered, as NNI; 0: no such bound
    longest_trial_s: float | None = None  # from its start until its last message is here
    hand_over_s: float = 0.0  # what runs in a place is stopped so long before its end; 0: never
    maximize: bool | None = None  # whether a higher result is better; None: results are not read
    target: float | None = None  # a result at which no more trials are begun
    patience: int = 0  # trials with a result since the last progress, as above; 0: no such bound
    least_progress: float = 0.0  # how much better a result must be to count as progress
    most_trial_s: float | None = None  # time of all attempts together, as above
    objectives: tuple[str, ...] = ()  # numbers without which a result does not count
    end_objective: str = "default"  # the number of a result that target and patience look at
    at_most: dict[str, float] = field(default_factory=dict)  # bounds of numbers of a result: one
    at_least: dict[str, float] = field(default_factory=dict)  # that breaks them reaches no target


#: ``onStall: grow`` raises the lookahead step by step, never beyond this many requests.
LOOKAHEAD_CEILING = 10_000

#: Consecutive tuner errors after which ``continue`` and ``retry`` give up: a tuner that
#: always raises would otherwise be asked for ever.
TUNER_ERRORS_IN_A_ROW = 10

#: Requests that may end with their parents' failure one after another, with neither a trial
#: nor a result in between, before no further one is opened until the next result: a tuner
#: that waits for a dead parent in every request would otherwise be asked for ever.
ABANDONED_IN_A_ROW = 32

#: Times a request is asked again under ``onTunerError: retry``.
REQUEST_RETRIES = 3

#: Restarts of a crashed tuner host without a delivered result in between.
HOST_RESTARTS_IN_A_ROW = 3

#: Times an agent may be lost in a row without a hello before the experiment gives up.
WORKER_LOSSES_IN_A_ROW = 3

#: Seconds a named stall waits for the stacks of the blocked threads before it fails.
STALL_REPORT_S = 2.0

#: A drain ends when the tuner has taken no result for so many times ``stallTimeout``, even if it
#: computes: an hour, if the file says nothing.
DRAIN_PATIENCE = 12

#: Seconds for which all requests that NNI would ask for stand still, in waits that may not be
#: waits for results, before one more is asked for.
ASK_MORE_S = 10.0

#: Seconds that the last messages of an attempt may take to the head, once it has ended.
HAND_IN_S = 5.0

#: Undelivered results beyond ``4 × slots`` and this many stop new requests: a tuner whose
#: ``receive_trial_result`` is slower than its trials must slow the experiment down.
DELIVERY_BACKLOG = 64

#: Different causes of failure that are counted apart; the rest is counted as one.
CAUSES_KEPT = 32

#: Longest text of one cause: a line of a traceback, cut.
CAUSE_CHARS = 300
