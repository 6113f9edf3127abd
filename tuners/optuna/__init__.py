"""Optuna's samplers as tuners, and its pruners as assessors.

Akiba, Sano, Yanase, Ohta, Koyama: Optuna: A Next-generation Hyperparameter Optimization Framework,
KDD 2019. This package translates our search spaces, proposals and results into Optuna's terms; what
to try next is Optuna's decision. Needs the extra ``optuna``, which is imported when a tuner or an
assessor is built, not before.
"""

from __future__ import annotations

from tuners.optuna.pruner import OptunaPrunerAssessor
from tuners.optuna.short_names import (
    CmaEsTuner,
    GPTuner,
    NSGAIIITuner,
    NSGAIITuner,
    QMCTuner,
    TPETuner,
)
from tuners.optuna.tuner import OptunaTuner

__all__ = [
    "CmaEsTuner",
    "GPTuner",
    "NSGAIIITuner",
    "NSGAIITuner",
    "OptunaPrunerAssessor",
    "OptunaTuner",
    "QMCTuner",
    "TPETuner",
]
