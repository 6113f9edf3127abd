"""Six roots; each other trial inherits from one of the six before it, until it is enough."""

import os

from tuners import NoMoreTrialError, Tuner

ROOTS = 6


class Dynasty(Tuner):
    def __init__(self, enough):
        self.enough = enough

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        if os.path.exists(self.enough):
            raise NoMoreTrialError
        parameters = {"save_path": self.save_path(parameter_id), "wait_s": 0.3}
        if parameter_id >= ROOTS:
            parent = parameter_id - ROOTS
            self.wait_for(parent)
            parameters["restore_path"] = self.save_path(parent)
        return parameters

    def receive_trial_result(self, parameter_id, parameters, value):
        pass

    def trial_end(self, parameter_id, success):
        pass
