"""Each child waits for a parent by a fixed rule, and inherits from it."""

from tuners import Tuner


class Lineage(Tuner):
    def __init__(self, roots=3, wait_s=0.0, held_from=None):
        self.roots = roots
        self.wait_s = wait_s
        self.held_from = held_from  # from this trial on they wait until the test lets them end

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        held = self.held_from is not None and parameter_id >= self.held_from
        wait_s = 3600.0 if held else self.wait_s
        parameters = {"save_path": self.save_path(parameter_id), "wait_s": wait_s}
        if parameter_id >= self.roots:
            parent = parameter_id - self.roots + (parameter_id * 7919) % self.roots
            self.wait_for(parent)
            parameters["restore_path"] = self.save_path(parent)
        return parameters

    def receive_trial_result(self, parameter_id, parameters, value):
        pass

    def trial_end(self, parameter_id, success):
        pass
