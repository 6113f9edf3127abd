"""A tuner that writes down what it is told, and trials whose results say what they inherited."""

import json
import os
import time

import numpy as np

from tests.support import hold
from tuners import ParentFailed, Tuner


class Told(Tuner):
    """Request *i* (from ``roots`` on) waits for a parent by a fixed rule and inherits from it,
    or begins anew if that parent failed.

    Without a ``state``: after a crash its calls are repeated. Each life of it writes a file of
    its own, so that the newest holds what the restored tuner was told, in all.
    """

    def __init__(self, folder, roots=3):
        self.roots = roots
        self.path = os.path.join(folder, f"calls-{time.time_ns()}.jsonl")
        self.calls = []
        self._write("")

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        parameters = {"save_path": self.save_path(parameter_id)}
        if parameter_id >= self.roots:
            parent = self.parent_of(parameter_id)
            try:
                self.wait_for(parent)
            except ParentFailed:  # a spoilt trial is the end of its line, and not of all lines
                return parameters
            parameters["restore_path"] = self.save_path(parent)
            parameters["parent"] = parent
        return parameters

    def parent_of(self, parameter_id):
        return parameter_id - 1 - (parameter_id * 7919) % self.roots

    def receive_trial_result(self, parameter_id, parameters, value):
        self._note(["result", parameter_id, json.dumps(value)])

    def trial_end(self, parameter_id, success):
        self._note(["end", parameter_id, success])

    def _note(self, call):
        self.calls.append(call)
        self._write(json.dumps(call) + "\n")

    def _write(self, text):
        with open(self.path, "a") as file:
            file.write(text)


class Rooted(Told):
    """All inherit from the first few, which retention keeps if low values are the best."""

    def parent_of(self, parameter_id):
        return parameter_id % self.roots


class Remembering(Told):
    """The same with a ``state``: after a crash it is told only what came since."""

    def state(self):
        return {"calls": self.calls}

    def restore(self, state):
        self.calls = state["calls"]
        self._write("".join(json.dumps(call) + "\n" for call in self.calls))


def train(parameters):
    """One generation more than the parent: the weights are a counter."""
    import trial_runtime as bq

    generation = np.zeros(1)
    if "restore_path" in parameters:
        report = bq.load_weights(into={"generation": generation})
        assert not report.missing, report
    generation += 1
    bq.report_intermediate(float(generation[0]) / 2)
    bq.save_weights({"generation": generation})
    bq.report_final(float(generation[0]))


def train_longer(parameters):
    """As train, long enough for something to happen meanwhile: from the fifth trial on not
    before the file ``GATE`` is there, if it is named."""
    import trial_runtime as bq

    hold.pace(0.1)
    gate = os.environ.get("GATE")
    if gate and bq.trial_id() > 4:
        hold.until(gate)
    train(parameters)


def train_loudly(parameters):
    """As train, with something to read."""
    print("beginning", flush=True)
    train(parameters)
    print("done")


def train_plainly(parameters):
    """As train, with a file of its own instead of our weights."""
    generation = 1.0
    if "restore_path" in parameters:
        with open(os.path.join(parameters["restore_path"], "generation.txt")) as file:
            generation += float(file.read())
    os.makedirs(parameters["save_path"], exist_ok=True)
    with open(os.path.join(parameters["save_path"], "generation.txt"), "w") as file:
        file.write(str(generation))
    return generation


def fail_first(parameters):
    """The first attempt leaves something at its save path and fails."""
    import trial_runtime as bq

    if bq.attempt() == 1:
        os.makedirs(parameters["save_path"], exist_ok=True)
        with open(os.path.join(parameters["save_path"], "half.txt"), "w") as file:
            file.write("half")
        raise ValueError("as planned")
    assert not os.path.exists(os.path.join(parameters["save_path"], "half.txt"))
    train(parameters)
