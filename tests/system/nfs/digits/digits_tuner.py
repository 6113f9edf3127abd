"""Evolution with inherited weights: each child waits for its parent, and changes a little of it."""

from tuners import Tuner


class Evolution(Tuner):
    def __init__(self, founders=4):
        self.founders = founders
        self.results = {}

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        draw = self.rng(parameter_id, "change")
        parameters = {"save_path": self.save_path(parameter_id), "hidden": 16, "rate": 0.2}
        if parameter_id < self.founders:
            return parameters | {"rate": 0.05 * 2.0**parameter_id}
        first = max(0, parameter_id - 2 * self.founders)
        near = range(first, parameter_id - self.founders + 1)
        with self.lock:
            parent = max(near, key=lambda each: (self.results.get(each, (0.0, 0))[0], -each))
        self.wait_for(parent)
        with self.lock:
            _, hidden = self.results[parent]
        wider = 8 if draw.random() < 0.5 else 0
        return parameters | {
            "restore_path": self.save_path(parent),
            "hidden": hidden + wider,
            "rate": 0.05 * 2.0 ** int(draw.integers(4)),
        }

    def receive_trial_result(self, parameter_id, parameters, value):
        with self.lock:
            self.results[parameter_id] = (value, parameters["hidden"])

    def trial_end(self, parameter_id, success):
        pass
