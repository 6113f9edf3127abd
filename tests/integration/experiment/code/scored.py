"""A trial whose result follows from its parameters alone, and a tuner that keeps no state."""

import os

import numpy as np

from tests.support import hold
from tuners import RegularizedEvolutionTuner


class Forgetful(RegularizedEvolutionTuner):
    """The same search; a restarted one has to be rebuilt from its calls."""

    def state(self):
        return None


def score(parameters):
    """Peak at x = 0.3, wide = 4; long enough to be caught in the middle, and
    held from trial ``HELD`` on until the file ``GATE`` is there."""
    import trial_runtime as bq

    hold.pace()
    gate = os.environ.get("GATE")
    if gate and bq.trial_id() >= int(os.environ["HELD"]):
        hold.until(gate)
    generation = np.zeros(1)
    if "restore_path" in parameters:
        bq.load_weights(into={"generation": generation})
    if "save_path" in parameters:
        bq.save_weights({"generation": generation + 1})
    return -abs(parameters["x"] - 0.3) - abs(parameters["wide"] - 4) / 10
