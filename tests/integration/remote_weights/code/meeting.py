"""A trial of which four run at once, so that two agents with two slots each must both be there."""

import os
import time
from pathlib import Path

import numpy as np

import trial_runtime as bq

#: A bound on a hang: an agent elsewhere takes its time to join.
PATIENCE_S = 200.0


def meet(parameters):
    """Roots wait for one another; children inherit a counter, and take a moment."""
    generation = np.zeros(1)
    if "restore_path" in parameters:
        report = bq.load_weights(into={"generation": generation})
        assert not report.missing, report
        time.sleep(0.3)
    else:
        here = Path(os.environ["MEETING"])
        (here / str(bq.trial_id())).touch()
        until = time.monotonic() + PATIENCE_S
        while len(list(here.iterdir())) < 4:
            assert time.monotonic() < until, "the others never came"
            time.sleep(0.05)
    generation += 1
    bq.save_weights({"generation": generation})
    return float(generation[0])
