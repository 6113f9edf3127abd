"""Faults of tuners, assessors, and of what checks them."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

TUNING = (
    Mutation(
        "a-failed-trial-is-not-told-to-the-sampler",
        2,
        "a sampler waits for the results of trials that have failed",
        "tuners/optuna/tuner.py",
        "self._study.tell(number, state=states.FAIL)",
        "pass",
        ("tests/unit/tuners/optuna/test_as_optuna.py",),
    ),
    Mutation(
        "a-restored-sampler-was-told-nothing",
        2,
        "a sampler begins anew at each restart",
        "tuners/optuna/tuner.py",
        "                else:\n                    self._tell(*details)\n",
        "",
        ("tests/unit/tuners/optuna/test_restoring.py",),
    ),
    Mutation(
        "proposals-since-the-state-are-known-in-one-order-only",
        2,
        "a request that was asked before another and answered after it is taken for a foreign one",
        "tuners/optuna/tuner.py",
        "            for _ in range(_TRIES):",
        "            for _ in range(1):",
        ("tests/unit/tuners/optuna/test_restoring.py",),
    ),
    Mutation(
        "the-last-value-is-judged-and-not-the-best",
        9,
        "median stop ends trials for one weak step",
        "tuners/assessors/medianstop.py",
        "max(scores) >= median(others)",
        "scores[-1] >= median(others)",
        ("tests/unit/tuners/assessors/test_medianstop.py",),
    ),
    Mutation(
        "a-package-takes-a-built-in-name",
        9,
        "a package that is installed changes what PBT means",
        "tuners/builtin.py",
        "    if found is not None:\n        module, class_name",
        "    if found is not None and not plugins(kind).get(name):\n        module, class_name",
        ("tests/unit/tuners/test_plugins.py",),
    ),
    Mutation(
        "the-experiments-sense-is-not-the-tuners",
        9,
        "an experiment that minimizes is led by a tuner that maximizes",
        "dispatcher/tuner_host/load.py",
        '{"seed": config.seed, "optimize_mode": config.optimize_mode}',
        '{"seed": config.seed}',
        ("tests/unit/tuners/test_plugins.py",),
    ),
    Mutation(
        "a-parameter-of-the-tuners-own-may-be-searched",
        9,
        "a search over restore_path is overwritten without a word",
        "tuners/inheriting.py",
        "            if name in self._own_keys:",
        "            if False:",
        ("tests/unit/tuners/test_fitting_spaces.py",),
    ),
    Mutation(
        "changed-parameters-are-not-seen",
        9,
        "a tuner that changes what it returned is told results of other parameters",
        "dispatcher/tuner_host/delivery.py",
        "self._told_of_changes and _changed(parameters, work.parameters)",
        "self._told_of_changes and False",
        ("tests/integration/tuners/test_check.py",),
    ),
    Mutation(
        "races-are-not-provoked",
        9,
        "a tuner that loses updates passes its check",
        "dispatcher/tuner_host/provoking.py",
        "_SHARE = 0.25",
        "_SHARE = 0.0",
        ("tests/integration/tuners/test_check.py",),
    ),
)
