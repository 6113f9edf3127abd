"""A tuner and its trial as somebody wrote them for 0.1.0: each trial inherits from one before."""

import time

import numpy as np

import trial_runtime as bq
from tuners import Tuner


class Generations(Tuner):
    """Request *i* waits for *i* − 2 and inherits from it."""

    def __init__(self):
        self.results = {}

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        parameters = {"save_path": self.save_path(parameter_id), "id": parameter_id}
        if parameter_id >= 2:
            self.wait_for(parameter_id - 2)
            parameters["restore_path"] = self.save_path(parameter_id - 2)
        return parameters

    def receive_trial_result(self, parameter_id, parameters, value):
        if parameter_id in self.results:
            raise AssertionError(f"{parameter_id} counted twice")
        self.results[parameter_id] = value

    def trial_end(self, parameter_id, success):
        pass


def train(parameters):
    """One generation more than the parent."""
    generation = np.zeros(1)
    if "restore_path" in parameters:
        bq.load_weights(into={"generation": generation})
    generation += 1
    for step in range(5):
        bq.report_intermediate(float(step))
        time.sleep(0.05)
    bq.save_weights({"generation": generation})
    bq.report_final(float(generation[0]))
