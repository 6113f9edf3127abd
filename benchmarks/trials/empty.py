"""Trials that do nothing: what is left is bequeath itself."""

import time


def train(parameters):
    return 1.0


def train_with_metrics(parameters):
    import trial_runtime as bq

    for step in range(100):
        bq.report_intermediate(float(step))
    time.sleep(parameters["idle_s"])
    return 1.0
