"""A tuner and trials that say over the console what the head has let them see."""

import os

import numpy as np

from tuners import Tuner


def say(*words):
    """One line in one write: the console is shared."""
    console = os.open("/dev/console", os.O_WRONLY | os.O_NOCTTY)
    os.write(console, (" ".join(map(str, ("told:", *words))) + "\n").encode())
    os.close(console)


class Told(Tuner):
    """What it is told has been acknowledged: the head may not forget it any more."""

    def __init__(self, roots=2):
        self.roots = roots

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        parameters = {"save_path": self.save_path(parameter_id)}
        if parameter_id >= self.roots:
            parent = parameter_id - self.roots
            self.wait_for(parent)
            parameters["restore_path"] = self.save_path(parent)
        return parameters

    def receive_trial_result(self, parameter_id, parameters, value):
        say("result", parameter_id, value)

    def trial_end(self, parameter_id, success):
        say("end", parameter_id, int(success))


def train(parameters):
    """One more than the parent. That it runs at all has been acknowledged, too."""
    import trial_runtime as bq

    say("runs", bq.trial_id(), bq.attempt())
    generation = np.zeros(1)
    bq.load_weights(into={"generation": generation})
    bq.save_weights({"generation": generation + 1})
    bq.report_final(float(generation[0]) + 1)
