"""Any pruner of Optuna as an assessor."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from tuners import values
from tuners.assessor import Assessor, AssessResult
from tuners.optuna.library import make_pruner, optuna, pruner_class


class OptunaPrunerAssessor(Assessor):
    """One of Optuna's pruners. Steps are counted from 0; values that are no numbers are skipped.

    Akiba, Sano, Yanase, Ohta, Koyama: Optuna: A Next-generation Hyperparameter Optimization
    Framework, KDD 2019; the papers of pruners are named by Optuna.

    The pruner sees one study of its own (``study``): each trial's intermediate results as it
    reports them, and how the trials ended. A trial that was pruned counts as pruned, one that
    failed as failed.

    Args:
        pruner: name of the class in ``optuna.pruners``, such as ``MedianPruner``; ``Median``
            will do.
        pruner_args: its arguments; ``wrapped_pruner`` is written as a name, or as ``{"name": …}``
            with arguments.
        optimize_mode: ``maximize`` or ``minimize``.
    """

    def __init__(
        self,
        pruner: str = "MedianPruner",
        pruner_args: Mapping[str, Any] | None = None,
        optimize_mode: str = "maximize",
    ) -> None:
        library = optuna()
        self.pruner = pruner_class(pruner).__name__
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.study = library.create_study(
                direction=values.optimize_mode(optimize_mode),
                sampler=library.samplers.RandomSampler(seed=0),
                pruner=make_pruner(pruner, values.mapping("pruner_args", pruner_args)),
            )
        self._trials: dict[str, Any] = {}
        self._last: dict[str, float] = {}
        self._pruned: set[str] = set()

    def assess_trial(self, trial_job_id: str, trial_history: Sequence[Any]) -> AssessResult:
        """Bad where the pruner would prune."""
        trial = self._trials.get(trial_job_id)
        if trial is None:
            trial = self._trials[trial_job_id] = self.study.ask()
        step = len(trial_history) - 1
        number = values.scalar(trial_history[-1])
        trial.report(number, step)
        self._last[trial_job_id] = number
        if not trial.should_prune():
            return AssessResult.Good
        self._pruned.add(trial_job_id)
        return AssessResult.Bad

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Tells the study of the trial's end."""
        trial = self._trials.pop(trial_job_id, None)
        if trial is None:
            return
        states = optuna().trial.TrialState
        last = self._last.pop(trial_job_id)
        if trial_job_id in self._pruned:
            self._pruned.discard(trial_job_id)
            self.study.tell(trial, state=states.PRUNED)
        elif success and last == last:  # not NaN
            self.study.tell(trial, last)
        else:
            self.study.tell(trial, state=states.FAIL)
