"""Tuners that cost next to nothing."""

import time

from tuners import Tuner


class Counting(Tuner):
    """Proposes the parameter id; trial ``idle_at`` is told to idle for ``idle_s`` seconds."""

    def __init__(self, idle_at=-1, idle_s=0.0):
        self.idle_at = idle_at
        self.idle_s = idle_s

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        return {"x": parameter_id, "idle_s": self.idle_s * (parameter_id == self.idle_at)}

    def receive_trial_result(self, parameter_id, parameters, value):
        pass

    def trial_end(self, parameter_id, success):
        pass


class Waiting(Counting):
    """The first ``parents`` requests return at once; request *i* after them waits for parent
    *i mod parents*."""

    def __init__(self, parents):
        super().__init__()
        self.parents = parents

    def generate_parameters(self, parameter_id):
        if parameter_id >= self.parents:
            self.wait_for(parameter_id % self.parents)
        return {"x": parameter_id}


class Remembering(Counting):
    """Keeps the sum of all results, and a state of its own."""

    def __init__(self):
        super().__init__()
        self.told = 0
        self.sum = 0.0

    def receive_trial_result(self, parameter_id, parameters, value):
        self.told += 1
        self.sum += value

    def state(self):
        return {"told": self.told, "sum": self.sum}

    def restore(self, state):
        self.told, self.sum = state["told"], state["sum"]


class Paced(Counting):
    """Proposes ``rate`` trials a second, each at its time."""

    def __init__(self, rate):
        super().__init__()
        self.rate = rate
        self.began = time.monotonic()

    def generate_parameters(self, parameter_id):
        time.sleep(max(0.0, self.began + parameter_id / self.rate - time.monotonic()))
        return {"x": parameter_id, "lr": 1 / (1 + parameter_id % 97), "op": f"op{parameter_id % 5}"}
