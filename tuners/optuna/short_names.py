"""Samplers that are tuners by names of their own; their arguments stand directly in classArgs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tuners.optuna.library import sampler_class
from tuners.optuna.tuner import OptunaTuner


class _NamedSampler(OptunaTuner):
    """An :class:`OptunaTuner` whose sampler is given by its class.

    Args:
        optimize_mode: ``maximize`` or ``minimize``; of no meaning with ``objectives``.
        objectives: as of :class:`OptunaTuner`.
        seed: of the sampler; null draws one.
        history: as of :class:`OptunaTuner`.
        **sampler_args: arguments of Optuna's sampler.
    """

    SAMPLER: ClassVar[str]

    def __init__(
        self,
        optimize_mode: str = "maximize",
        objectives: Mapping[str, str] | None = None,
        seed: int | None = 0,
        history: int | None = None,
        **sampler_args: Any,
    ) -> None:
        super().__init__(self.SAMPLER, sampler_args, optimize_mode, objectives, seed, history)

    @classmethod
    def more_arguments(cls) -> type:
        """The class that takes ``sampler_args``."""
        return sampler_class(cls.SAMPLER)


class TPETuner(_NamedSampler):
    """Tree-structured Parzen estimators; of several objectives what is known as MOTPE.

    Bergstra, Bardenet, Bengio, Kégl: Algorithms for Hyper-Parameter Optimization, NIPS 2011,
    section 4; Watanabe: Tree-Structured Parzen Estimator, arXiv:2304.11127, for what Optuna does;
    Ozaki, Tanigaki, Watanabe, Nomura, Onishi: Multiobjective Tree-Structured Parzen Estimator, JAIR
    73, 2022, for several objectives.
    """

    SAMPLER = "TPESampler"


class CmaEsTuner(_NamedSampler):
    """CMA-ES, for spaces of numbers; choices are drawn at random beside it.

    Hansen: The CMA Evolution Strategy: A Tutorial, arXiv:1604.00772.
    """

    SAMPLER = "CmaEsSampler"


class GPTuner(_NamedSampler):
    """Bayesian optimisation with a Gaussian process and log expected improvement. Needs torch.

    Ament, Daulton, Eriksson, Balandat, Bakshy: Unexpected Improvements to Expected Improvement for
    Bayesian Optimization, NeurIPS 2023.
    """

    SAMPLER = "GPSampler"


class QMCTuner(_NamedSampler):
    """Quasi-random search: Sobol' or Halton sequences, which leave no holes.

    Bergstra, Bengio: Random Search for Hyper-Parameter Optimization, JMLR 13, 2012, where sets of
    points of low discrepancy are compared.
    """

    SAMPLER = "QMCSampler"


class NSGAIITuner(_NamedSampler):
    """NSGA-II, a genetic algorithm for several objectives.

    Deb, Pratap, Agarwal, Meyarivan: A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II,
    IEEE Transactions on Evolutionary Computation 6(2), 2002, section III.
    """

    SAMPLER = "NSGAIISampler"


class NSGAIIITuner(_NamedSampler):
    """NSGA-III, a genetic algorithm for many objectives: reference points keep its front spread.

    Deb, Jain: An Evolutionary Many-Objective Optimization Algorithm Using Reference-Point-Based
    Nondominated Sorting Approach, IEEE Transactions on Evolutionary Computation 18(4), 2014.
    """

    SAMPLER = "NSGAIIISampler"
