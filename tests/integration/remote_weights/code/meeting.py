"""A trial of which four run at once, so that two agents with two slots each must both be there."""

import os
from pathlib import Path

import numpy as np

import trial_runtime as bq
from tests.support import hold


def meet(parameters):
    """Roots wait for one another; children inherit a counter, and take a moment."""
    generation = np.zeros(1)
    if "restore_path" in parameters:
        report = bq.load_weights(into={"generation": generation})
        assert not report.missing, report
        hold.pace(0.3)
    else:
        here = Path(os.environ["MEETING"])
        (here / str(bq.trial_id())).touch()
        hold.until(lambda: len(list(here.iterdir())) >= 4)
    generation += 1
    bq.save_weights({"generation": generation})
    return float(generation[0])
