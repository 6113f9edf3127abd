"""Each child waits for a parent by a fixed rule, and inherits from it."""

from tuners import Tuner


class Lineage(Tuner):
    def __init__(self, roots=3, wait_s=0.0):
        self.roots = roots
        self.wait_s = wait_s

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        parameters = {"save_path": self.save_path(parameter_id), "wait_s": self.wait_s}
        if parameter_id >= self.roots:
            parent = parameter_id - self.roots + (parameter_id * 7919) % self.roots
            self.wait_for(parent)
            parameters["restore_path"] = self.save_path(parent)
        return parameters

    def receive_trial_result(self, parameter_id, parameters, value):
        pass

    def trial_end(self, parameter_id, success):
        pass
