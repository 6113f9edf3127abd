"""Loads the parent's generation, adds one, saves it; says where it ran."""

import os
import socket
import time

import numpy as np

import trial_runtime as bq


def main(parameters=None):
    parameters = bq.get_parameters() if parameters is None else parameters
    generation = np.zeros(1)
    if "restore_path" in parameters:
        report = bq.load_weights(into={"generation": generation})
        assert not report.missing, report
    generation += 1
    bq.report_intermediate(float(generation[0]))
    until = time.monotonic() + parameters["wait_s"]
    go = os.environ.get("GO")  # a file that lets trials end
    while time.monotonic() < until and not (go and os.path.exists(go)):
        time.sleep(0.02)
    bq.save_weights({"generation": generation})
    print("ran on", socket.gethostname(), os.environ.get("SECRET", ""))
    bq.report_final(float(generation[0]))


if __name__ == "__main__":
    main()
