"""A tuner as they were written for NNI v0.5: children wait for their parents in threads.

Each request of a child blocks on the Event of its parent, which the parent's result sets. The
lock is let go first, or the result could not come in.
"""

import logging
import os
from threading import Event, Lock

from nni.tuner import Tuner

logger = logging.getLogger("sharing_tuner")


class SharingTuner(Tuner):
    def __init__(self, save_dir_root, population=3):
        self.save_dir_root = save_dir_root
        self.population = population
        self.lock_of_mine = Lock()
        self.events = {}
        self.rewards = {}

    def save_dir(self, parameter_id):
        return os.path.join(self.save_dir_root, str(parameter_id))

    def generate_parameters(self, parameter_id):
        with self.lock_of_mine:
            self.events[parameter_id] = Event()
            parent = parameter_id - self.population if parameter_id >= self.population else None
        if parent is not None:
            logger.info("trial %s waits for its parent %s", parameter_id, parent)
            self.events[parent].wait()
        return {
            "restore_dir": None if parent is None else self.save_dir(parent),
            "save_dir": self.save_dir(parameter_id),
            "prev_id": parent,
        }

    def receive_trial_result(self, parameter_id, parameters, reward):
        with self.lock_of_mine:
            self.rewards[parameter_id] = reward
        self.events[parameter_id].set()

    def update_search_space(self, search_space):
        pass
