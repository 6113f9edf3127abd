"""A tuner written for NNI that searches in waves: the next one begins when all of it is known.

Between two waves it has nothing to give. It raises NoMoreTrialError, remembers who asked, and
answers by the callback that NNI hands it once the last result of the wave is there.
"""

import random

import nni
from nni.tuner import Tuner
from nni.utils import OptimizeMode, extract_scalar_reward


class WavesTuner(Tuner):
    def __init__(self, optimize_mode="maximize", size=4):
        self.optimize_mode = OptimizeMode(optimize_mode)
        self.size = size
        self.space = {}
        self.best = None
        self.ready = []
        self.running = set()
        self.asked = []
        self.send = None
        self.random = random.Random(1)

    def update_search_space(self, search_space):
        self.space = search_space
        self.ready = [self.draw() for _ in range(self.size)]

    def draw(self):
        low, high = self.space["rate"]["_value"]
        center = self.best[1]["rate"] if self.best else None
        rate = self.random.uniform(low, high) if center is None else center
        rate = min(high, max(low, rate * self.random.uniform(0.7, 1.4)))
        return {"rate": rate, "steps": 30, "rule": {"_name": "plain"}}

    def generate_parameters(self, parameter_id, **kwargs):
        self.send = kwargs["st_callback"]
        if not self.ready:
            self.asked.append(parameter_id)
            raise nni.NoMoreTrialError("the wave is not over")
        return self.give(parameter_id)

    def give(self, parameter_id):
        self.running.add(parameter_id)
        return self.ready.pop()

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        reward = extract_scalar_reward(value)
        if self.optimize_mode is OptimizeMode.Minimize:
            reward = -reward
        if self.best is None or reward > self.best[0]:
            self.best = (reward, parameters)

    def trial_end(self, parameter_id, success, **kwargs):
        self.running.discard(parameter_id)
        if self.running or self.ready:
            return
        self.ready = [self.draw() for _ in range(self.size)]
        while self.asked and self.ready:
            asked = self.asked.pop(0)
            self.send(asked, self.give(asked))
