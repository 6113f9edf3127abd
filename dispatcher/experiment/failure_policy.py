"""The reaction to failures: retries by reason, and when a worker, a disk or everything fails.

The keys stand at the top level of the experiment file: :class:`FailurePolicy` is the base of
:class:`~dispatcher.experiment.config.ExperimentConfig`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dispatcher.core.settings import QUARANTINE_S
from dispatcher.experiment.fields import CountOrZero, Duration, Grace, Section, SizeOrZero

FAILED_IN_A_ROW = 25
"""A search space in which half of the trials fail has a row of 25 failures with a probability of
1 in 3,000 within 20,000 trials (20,000 / 2**26); with 10 it would be stopped about ten times."""

FAILED_PER_SLOT = 4
"""Trials that fail do so at once, those that go well take their time: with many slots the first
``slots`` failures say nothing, if half of the trials fail, and hardly ever are there four times
as many before the first success."""


class RetriesConfig(Section):
    """Attempts after the first, by the reason for which an attempt ended."""

    failed: Annotated[
        CountOrZero | None, Field(description="After an exit code other than 0, or an exception.")
    ] = None
    signalled: Annotated[
        CountOrZero | None, Field(description="After a signal that nobody here had sent.")
    ] = None
    out_of_memory: Annotated[
        CountOrZero | None, Field(description="After the kernel or Python reported it.")
    ] = None
    could_not_start: Annotated[
        CountOrZero | None, Field(description="When a command or its folder was not there.")
    ] = None
    timed_out: Annotated[
        CountOrZero | None,
        Field(description="After `maxTrialDuration`; none if not given, whatever `trialRetries`."),
    ] = None
    preempted: Annotated[
        CountOrZero | None,
        Field(description="When its place was taken; within `lostRetries` if not given."),
    ] = None

    def by_reason(self) -> dict[str, int]:
        """The limits that were given, by the values of ``core.model.EndReason``."""
        given = {
            "failed": self.failed,
            "signalled": self.signalled,
            "out of memory": self.out_of_memory,
            "could not start": self.could_not_start,
            "timed out": self.timed_out,
            "preempted": self.preempted,
        }
        return {reason: limit for reason, limit in given.items() if limit is not None}


class FailurePolicy(Section):
    """The keys for the reaction to failures."""

    trial_retries: Annotated[
        CountOrZero,
        Field(
            description="Attempts after the first for a trial that failed, was ended by a signal "
            "or for want of memory, or could not start."
        ),
    ] = 1
    lost_retries: Annotated[
        CountOrZero,
        Field(
            description="Attempts after the first for a trial that was lost with its host, or "
            "preempted; they do not count against `trialRetries`."
        ),
    ] = 5
    retries: Annotated[
        RetriesConfig,
        Field(
            description="Limits for single reasons, each with a count of its own: "
            "`{outOfMemory: 0, timedOut: 1}`. What is not named is bounded by `trialRetries`."
        ),
    ] = Field(default_factory=RetriesConfig)
    retry_backoff: Annotated[
        Grace,
        Field(
            description="Time before the second attempt of a trial that failed; doubled for each "
            "further one, up to 5 minutes. After its first loss a trial is tried again at once."
        ),
    ] = 1.0
    max_failed_trials_in_a_row: Annotated[
        CountOrZero | None,
        Field(
            description="Trials that end in failure, retries included, with no success in "
            "between, after which the experiment fails and names the common cause; 0 for no "
            "limit; the larger of 25 and four times `trialConcurrency` if not given."
        ),
    ] = None
    quarantine_after: Annotated[
        CountOrZero,
        Field(
            description="Different trials that fail one after another on one worker while they "
            "go well on another, after which it is left out for a while; 0 for never."
        ),
    ] = 8
    quarantine_pause: Annotated[
        Duration,
        Field(
            description="Time for which such a worker is left out, before it gets one attempt as "
            "a probe; doubled each time that fails as well, up to an hour."
        ),
    ] = QUARANTINE_S
    disk_reserve: Annotated[
        SizeOrZero,
        Field(
            description="Room on the disks of the experiment's folder and of the weights root "
            "below which no new trial is started; at most 5 % of the disk; 0 for none."
        ),
    ] = 500 << 20
