"""A tuner and trials for whole-experiment tests: children inherit a counter of generations."""

import os
import signal
import sys
import threading

import numpy as np

from tests.support import hold
from tuners import NoMoreTrialError, ParentFailed, Tuner


class Inheriting(Tuner):
    """Request *i* (from ``roots`` on) waits for a parent by a fixed rule and inherits from it.

    A parent that failed is replaced by one nearer to the root; trials fail by a rule, too.
    """

    def __init__(self, roots=4, trouble="none", folder=None):
        self.roots = roots
        self.trouble = trouble
        self.folder = folder

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        parameters = {
            "save_path": self.save_path(parameter_id),
            "trouble": self._trouble(parameter_id),
        }
        parent = parameter_id - self.roots + (parameter_id * 7919) % self.roots
        while parameter_id >= self.roots and parent >= 0:
            try:
                self.wait_for(parent)
            except ParentFailed:
                parent -= 1
                continue
            parameters["restore_path"] = self.save_path(parent)
            parameters["parent"] = parent
            break
        return parameters

    def _trouble(self, parameter_id):
        draw = self.rng(parameter_id, "trouble").random()
        if self.trouble == "random":
            for share, kind in ((0.08, "raise"), (0.14, "kill"), (0.2, "silent"), (0.26, "crash")):
                if draw < share:
                    return kind
        return "none"

    def receive_trial_result(self, parameter_id, parameters, value):
        self._note(f"result {parameter_id} {value}")

    def trial_end(self, parameter_id, success):
        self._note(f"end {parameter_id} {success}")

    def _note(self, line):
        if self.folder:
            with open(os.path.join(self.folder, "calls.txt"), "a") as file:
                file.write(line + "\n")


class OwnEvents(Tuner):
    """The pattern of the NNI tutorial: an Event per id, set in receive_trial_result."""

    def __init__(self):
        self.events = {}
        self.values = {}

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        with self.lock:
            self.events[parameter_id] = threading.Event()
            parent = parameter_id // 2 if parameter_id else None
        if parent is None:
            return {"save_path": "t/0", "trouble": "none"}
        self.events[parent].wait()
        return {
            "save_path": f"t/{parameter_id}",
            "restore_path": f"t/{parent}",
            "parent": parent,
            "trouble": "none",
        }

    def receive_trial_result(self, parameter_id, parameters, value):
        self.values[parameter_id] = value
        self.events[parameter_id].set()


class LeavesItsLockLocked(Tuner):
    """Nobody gives back the lock that each result, and each request but the first two, needs,
    until the file ``repaired`` is there; then it notes what it is told."""

    def __init__(self, folder):
        self.folder = folder
        self.own = threading.Lock()
        self.own.acquire()  # as an earlier exception would have left it

    def update_search_space(self, search_space):
        pass

    def _enter(self):
        if not os.path.exists(os.path.join(self.folder, "repaired")):
            self.own.acquire()

    def generate_parameters(self, parameter_id):
        if parameter_id >= 2:
            self._enter()
        return {"trouble": "none"}

    def receive_trial_result(self, parameter_id, parameters, value):
        self._enter()
        with open(os.path.join(self.folder, "results.txt"), "a") as file:
            file.write(f"{parameter_id}\n")


class Exhausted(Tuner):
    """Not now while two run; five trials in all."""

    def __init__(self):
        self.running = 0
        self.given = 0

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        if self.given == 5 or self.running >= 2:
            raise NoMoreTrialError("not now")
        self.given += 1
        self.running += 1
        return {"trouble": "none"}

    def receive_trial_result(self, parameter_id, parameters, value):
        self.running -= 1


def train(parameters):
    """Load the parent's generation, add one, save, report it."""
    import trial_runtime as bq

    generation = np.zeros(1)
    if "restore_path" in parameters:
        report = bq.load_weights(into={"generation": generation})
        assert not report.missing, report
    generation += 1
    bq.report_intermediate(float(generation[0]) / 2)
    trouble = parameters["trouble"]
    if trouble == "raise":
        raise ValueError("as planned")
    if trouble == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if "save_path" in parameters:
        bq.save_weights({"generation": generation})
    if trouble == "silent":
        return None
    bq.report_final(float(generation[0]))
    if trouble == "crash":
        sys.stdout.flush()
        os._exit(7)
    if trouble == "slow":
        hold.pace(parameters.get("seconds", 30))
    return None


def slow(parameters):
    """Half a second, then a result; from trial ``HELD`` on not before the file ``GATE`` is there,
    so that the experiment goes on until its test has done what it wants to."""
    import trial_runtime as bq

    for step in range(10):
        bq.report_intermediate(float(step))
        hold.pace(0.05)
    gate = os.environ.get("GATE")
    if gate and bq.trial_id() >= int(os.environ["HELD"]):
        hold.until(gate)
    if "save_path" in parameters:
        bq.save_weights({"generation": np.ones(1)})
    return 1.0


class StopsTheWeak:
    """An assessor: no trial with an even first metric goes on after its third."""

    def assess_trial(self, trial_job_id, trial_history):
        return not (len(trial_history) >= 3 and int(trial_job_id) % 2 == 0)


def until_told(parameters):
    """Even trials go on until they are told to stop, and report no result of their own."""
    import trial_runtime as bq

    step = 0
    while step < 5 or bq.trial_id() % 2 == 0:
        if bq.should_stop():
            return None
        bq.report_intermediate(float(step))
        step += 1
        hold.pace()
    return 1.0


def slow_child(parameters):
    """As train, long enough that a sweep falls into the run."""
    hold.pace(0.15)
    return train(parameters)


class HoldsItsOwnLock(Tuner):
    """Waits with a lock of its own held, which receive_trial_result wants: the old deadlock."""

    def __init__(self):
        self.own = threading.Lock()

    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id):
        if parameter_id == 0:
            return {"trouble": "none"}
        with self.own:
            self.wait_for(parameter_id - 1)
        return {"trouble": "none"}

    def receive_trial_result(self, parameter_id, parameters, value):
        with self.own:
            pass


class Unbuildable(Tuner):
    """What no look at its text can know."""

    def __init__(self):
        raise ValueError("no_such thing is here")
