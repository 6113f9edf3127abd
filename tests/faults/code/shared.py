"""Trials that add one to a shared store, in rounds, and a tuner that waits for versions."""

import os
import time

import numpy as np

import trial_runtime as bq
from tests.support import hold
from trial_runtime.api_errors import StoreConflict
from tuners import Tuner

STORE = "omega"
LAST = 11


class Rounds(Tuner):
    """Trial 0 begins the store. Each later one waits until there is a version and pins one that is
    held for its round of four, although newer ones come meanwhile; every third starts from it."""

    def __init__(self, folder):
        self.round, self.pin = 0, 0

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        store = self.shared_store(STORE)
        if parameter_id == 0:
            return {}
        newest = self.wait_for_version(STORE, by=0)
        with self.lock:
            this = parameter_id // 4 + 1
            if this > self.round:
                self.round, self.pin = this, max(newest, store.latest())
                store.hold(self.pin)
            pin = self.pin
        parameters = {"pin": pin, "last": LAST}
        if parameter_id % 3 == 0:
            return {**parameters, "restore_path": store.restore_path(pin)}
        return store.pin(parameters, pin)

    def receive_trial_result(self, parameter_id, parameters, value):
        pass

    def state(self):
        return {"round": self.round, "pin": self.pin}

    def restore(self, state):
        self.round, self.pin = state["round"], state["pin"]

    def restore_proposal(self, parameter_id, parameters):
        if parameters.get("pin", 0) > self.pin:
            self.round, self.pin = parameter_id // 4 + 1, parameters["pin"]


def add_one():
    """Adds one to what all change, and one to what is its own."""
    told, trial = bq.get_parameters(), bq.trial_id()
    store = bq.shared_store(STORE)
    if "pin" not in told:
        try:
            number = store.publish({"all": np.zeros(256), "frozen": np.ones(2048)})
        except StoreConflict:  # an attempt before was accepted, and died before it heard of that
            number = store.advance()
        bq.report_final(number)
        return
    if trial == told["last"]:
        _wait_for_the_dead()
    state = bq.load_weights() if "restore_path" in told else store.load()
    assert store.version == told["pin"]
    assert state["frozen"].tolist() == [1.0] * 2048
    changed = {name: np.array(one) for name, one in state.items()}
    changed["all"] += 1
    changed[f"trial {trial}"] = np.full(8, 1.0)
    bq.report_final(store.publish(changed, merge="add"))


def _wait_for_the_dead():
    """The last one keeps the experiment going until all have died who are to."""
    plan, struck = os.environ["BEQUEATH_FAILPOINTS"], os.environ["BEQUEATH_FAILPOINTS_STRUCK"]
    heads = {"keeper.versions.listed@2", "keeper.versions.granted@1", "keeper.versions.removed@1"}
    assert "kill" in plan
    give_up = time.monotonic() + 150
    hold.until(lambda: heads <= set(os.listdir(struck)) or time.monotonic() > give_up)
