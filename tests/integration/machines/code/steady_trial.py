"""Counts, and wants a file of its host to be there, and room on its disk for what it prints."""

import os
import time

import numpy as np

import trial_runtime as bq

STEPS = 5


def main(parameters=None):
    parameters = bq.get_parameters() if parameters is None else parameters
    wanted = os.environ.get("WANTED")
    if wanted:
        with open(wanted, "rb"):
            pass
    scratch = int(os.environ.get("SCRATCH_BYTES", "0"))
    if scratch:
        with open("scratch", "wb") as file:  # in the working directory
            file.write(bytes(scratch))
    for step in range(STEPS):
        bq.report_intermediate(float(step))
        time.sleep(0.1)
    bq.save_weights({"steps": np.full(1, STEPS)})
    bq.report_final(float(STEPS))


if __name__ == "__main__":
    main()
