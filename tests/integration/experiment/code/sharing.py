"""Trials that publish to one shared store at the same time, and one that reads what was."""

import os
import signal
import threading
import time

import numpy as np

import trial_runtime as bq
from tests.support import hold
from trial_runtime import session
from tuners import Tuner

WRITERS = 4


class Sharing(Tuner):
    """Trial 0 begins the store; the writers after it pin its version, all of them, and the last
    trial pins it, too, when they are over."""

    def __init__(self, folder):
        self.folder = folder

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        store = self.shared_store("omega")
        if parameter_id == 0:
            return {"role": "first"}
        self.wait_for(0)
        if parameter_id <= WRITERS:
            own = {"role": "writer", "number": parameter_id, "folder": self.folder}
            return store.pin(own, version=1)
        self.wait_for(*range(WRITERS + 1))
        return store.pin({"role": "reader", "newest": store.latest()}, version=1)

    def receive_trial_result(self, parameter_id, parameters, value):
        pass


def share():
    """One trial; its result is the number of a version."""
    told = bq.get_parameters()
    store = bq.shared_store("omega")
    if told["role"] == "first":
        assert store.load() is None
        state = {"common": np.zeros(8), **{f"w{n}": np.zeros(1000) for n in range(1, WRITERS + 1)}}
        bq.report_final(store.publish(state))
        return
    state = {name: np.array(one) for name, one in store.load().items()}
    assert store.version == 1
    assert all(not one.any() for one in state.values()), "what was pinned, and nothing later"
    if told["role"] == "reader":
        bq.report_final(told["newest"])
        return
    number = told["number"]
    state[f"w{number}"] += number
    state["common"] += 1
    _wait_for_the_others(told["folder"], number)
    bq.report_final(store.publish(state, merge="add"))


def _wait_for_the_others(folder, number):
    open(os.path.join(folder, f"here-{number}"), "w").close()
    give_up = time.monotonic() + 60
    hold.until(lambda: len(os.listdir(folder)) >= WRITERS or time.monotonic() > give_up)


def share_and_die():
    """A writer that is killed once what it offers has left, and tried again."""
    if bq.get_parameters()["role"] == "writer" and bq.attempt() == 1:
        ours = session.current()
        ask = ours.link.ask

        def ask_and_die(offer):
            threading.Thread(target=ask, args=(offer,), daemon=True).start()
            hold.until(lambda: ours.link._receipted >= ours.link._sent > 0)
            os.kill(os.getpid(), signal.SIGKILL)

        ours.link.ask = ask_and_die
    share()
