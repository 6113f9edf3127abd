"""The experiment, as its file describes it: frozen, checked, all paths absolute."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from dispatcher.experiment.agreement import check_agreement
from dispatcher.experiment.algorithm import AlgorithmConfig
from dispatcher.experiment.all_keys import AllKeys, OptimizeMode
from dispatcher.experiment.problems import Misfit

__all__ = ["AlgorithmConfig", "ExperimentConfig"]


class ExperimentConfig(AllKeys):
    """All of an experiment's settings, which agree with one another."""

    @model_validator(mode="after")
    def _keys_agree(self) -> Self:
        check_agreement(self)
        return self

    @model_validator(mode="after")
    def _settle_optimize_mode(self) -> Self:
        of_tuner = _read_mode(self.tuner.class_args.get("optimize_mode"))
        if self.optimize_mode is None:
            # Frozen for everybody else; here the value is still being made.
            object.__setattr__(self, "optimize_mode", of_tuner or "maximize")
        elif of_tuner is not None and of_tuner != self.optimize_mode:
            raise Misfit(
                f"'optimizeMode' is {self.optimize_mode}, but the tuner's is {of_tuner}",
                at=("optimizeMode",),
                hint="keep one of 'optimizeMode' and 'tuner.classArgs.optimize_mode'",
            )
        return self


def _read_mode(value: object) -> OptimizeMode | None:
    match value.lower() if isinstance(value, str) else None:
        case "maximize":
            return "maximize"
        case "minimize":
            return "minimize"
        case _:
            return None
