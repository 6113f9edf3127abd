"""Translates the experiment file into the settings of the core."""

from __future__ import annotations

import json

from dispatcher.core.settings import HAND_IN_S, Settings, StallPolicy, TunerErrorPolicy
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.stop_when import end_objective
from dispatcher.wiring.needs import needs_of, worker_rules
from dispatcher.wiring.storage_domains import unseen_domains
from tuners.objectives import known_objectives


def settings_of(config: ExperimentConfig) -> Settings:
    """The settings of the core."""
    silent = config.on_trial_without_result
    ends, no_progress = config.stop_when, config.stop_when.no_progress
    objective, mode = end_objective(config)
    known = known_objectives(config.objectives)
    longest_s, leaves_s = config.max_trial_duration, config.trial_stop_grace + HAND_IN_S
    return Settings(
        slots=config.trial_concurrency,
        lookahead=config.effective_lookahead,
        max_trials=config.max_trial_number,
        max_duration_s=config.max_experiment_duration,
        on_tuner_error=TunerErrorPolicy(config.on_tuner_error),
        on_stall=StallPolicy(config.on_stall),
        stall_timeout_s=config.stall_timeout,
        trial_retries=config.trial_retries,
        lost_retries=config.lost_retries,
        retry_backoff_s=config.retry_backoff,
        retries=config.retries.by_reason(),
        slots_follow=_follow(config),
        losses_at_once=True,
        through_when_stopped=True,
        bounded_drain=True,
        end_dropped=True,
        placed_anew=True,
        asks_at_most=config.asks_at_most,
        longest_trial_s=None if longest_s is None else longest_s + leaves_s,
        hand_over_s=leaves_s,
        maximize=mode != "minimize",
        objectives=tuple(config.objectives),
        end_objective=objective,
        at_most={one.name: one.bound for one in known if one.bound is not None and one.is_most},
        at_least={
            one.name: one.bound for one in known if one.bound is not None and not one.is_most
        },
        target=ends.target,
        patience=0 if no_progress is None else no_progress.trials,
        least_progress=0.0 if no_progress is None else no_progress.least_improvement,
        most_trial_s=ends.trial_time,
        max_failed_in_a_row=config.effective_max_failed_in_a_row,
        quarantine_after=config.quarantine_after,
        quarantine_pause_s=config.quarantine_pause,
        workers=worker_count(config),
        substitute_result=json.dumps(silent) if isinstance(silent, float) else None,
        silent_is_failure=silent == "fail",
        trial_stop_grace_s=config.trial_stop_grace,
        assess=config.assessor is not None or _may_be_advised(config),
        early_stop_keeps_result=config.assessor is not None and config.assessor.keep_result,
        needs=needs_of(config),
        worker_rules=worker_rules(config),
        keep_versions=config.shared_stores.bound if sees_versions(config) else 0,
        keep_versions_of=config.shared_stores.bounds if sees_versions(config) else {},
    )


def _follow(config: ExperimentConfig) -> tuple[str, ...]:
    """Workers without a number of slots in the file. Those of other packages report theirs
    themselves."""
    return tuple(worker.name for _, worker in config.workers if not worker.slots_given)


def worker_count(config: ExperimentConfig) -> int:
    """The number of machines that trials run on."""
    return len(config.workers)


def sees_versions(config: ExperimentConfig) -> bool:
    """Whether versions of shared stores can be removed from here, wherever they are written."""
    return config.keeps_weights and not config.in_memory and not unseen_domains(config)


def _may_be_advised(config: ExperimentConfig) -> bool:
    """Whether the tuner may be an advisor of NNI's, which sees intermediate results, too. The
    file need not say so; it shows when the class is built."""
    return config.for_nni and not config.tuner.builtin
