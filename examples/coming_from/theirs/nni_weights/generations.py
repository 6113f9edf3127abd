"""For NNI: children wait for two trials before them, in threads, and go on from the better one."""

import random
from threading import Event, Lock

from nni.tuner import Tuner


class Generations(Tuner):
    def __init__(self, population):
        self.population = population
        self.lock = Lock()
        self.ended = {}
        self.accuracy = {}

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        with self.lock:
            self.ended[parameter_id] = Event()
            older = [parameter_id - self.population, parameter_id - self.population + 1]
            older = [each for each in older if each in self.ended and each != parameter_id]
        for each in older:
            self.ended[each].wait()
        best = max(older, key=self.accuracy.get, default=None)
        return {
            "lr": 10 ** random.uniform(-3, -1),
            "restore_path": None if best is None else f"weights-{best}.pth",
            "save_path": f"weights-{parameter_id}.pth",
        }

    def receive_trial_result(self, parameter_id, parameters, reward):
        with self.lock:
            self.accuracy[parameter_id] = reward
        self.ended[parameter_id].set()
