"""A trial with two objectives: wider is more accurate and larger; weights are inherited."""

import numpy as np

import bequeath as bq


def train(parameters):
    width = int(parameters["width"])
    state = bq.load_weights() or {"steps": np.zeros(1)}
    steps = state["steps"] + 1
    if "save_path" in parameters:
        bq.save_weights({"steps": steps})
    result = {"default": width / 10 + 0.001 * float(steps[0]), "size": width**2}
    if width % 4 == 3:
        del result["size"]
    bq.report_final(result)
