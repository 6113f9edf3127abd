"""A trial of one second that reports on its way."""

import time

import trial_runtime as bq

STEPS = 5


def main(parameters):
    for step in range(STEPS):
        bq.report_intermediate(float(step))
        time.sleep(1.0 / STEPS)
    return 1.0
