"""Built-in tuners as NNI's trials know them: the keys of their parameters are NNI's.

Experiment files written for NNI get them for NNI's names, see
``dispatcher/nni/files/algorithms.py``; for new files there are better ones.
"""

from __future__ import annotations

from tuners.nni.batch import BatchTuner
from tuners.nni.budgets import NniBOHBTuner, NniHyperbandTuner
from tuners.nni.pbt import NniPBTTuner
from tuners.nni.tpe import NniTPETuner

__all__ = ["BatchTuner", "NniBOHBTuner", "NniHyperbandTuner", "NniPBTTuner", "NniTPETuner"]
