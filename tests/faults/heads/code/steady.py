"""Trials that report until they are let go, so that a test decides what happens meanwhile."""

import os
import subprocess

from tests.support import hold
from tuners import Tuner


class Steady(Tuner):
    """Each trial watches for a file of its own; what was told is written down."""

    def __init__(self, folder, steps=None, helper=False):
        self.folder = folder
        self.steps = steps
        self.helper = helper
        self.told = 0

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        return {
            "release": os.path.join(self.folder, str(parameter_id)),
            "steps": self.steps,
            "helper": self.helper,
            "save_path": self.save_path(parameter_id),
        }

    def receive_trial_result(self, parameter_id, parameters, value):
        self.told += 1

    def state(self):
        return {"told": self.told}

    def restore(self, state):
        self.told = state["told"]


def count(parameters):
    """Report 0, 1, 2… until the file is there, or for so many steps; the file's content is the
    exit code, 0 if empty."""
    import numpy as np

    import trial_runtime as bq

    if parameters["helper"]:  # as data loaders are, and in a session of its own
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    step = 0
    while not os.path.exists(parameters["release"]) and step != parameters["steps"]:
        bq.report_intermediate(step)
        step += 1
        hold.pace(0.05)
    bq.save_weights({"steps": np.full(1, step)})
    bq.report_final(step)
    if os.path.exists(parameters["release"]):
        with open(parameters["release"]) as file:
            code = int(file.read() or 0)
        if code:
            raise SystemExit(code)
