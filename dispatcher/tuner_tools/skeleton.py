"""The files of a new tuner: a small evolution with inheritance, its test, a trial, an experiment.

``bequeath tuner new`` writes them exactly as they stand here.
"""

from __future__ import annotations

from pathlib import Path

from dispatcher.errors import UserError

TUNER = '''"""A small evolution: a child is a good one, changed a little, with its weights."""

import bequeath as bq
from tuners.space import mutate, parse, sample


class MyTuner(bq.Tuner):
    """The first ``founders`` trials are drawn; each later one starts from a good one's weights."""

    def __init__(self, founders=4, optimize_mode="maximize"):
        self.founders = founders
        self.sign = 1 if optimize_mode == "maximize" else -1
        self.finished = []  # (score, parameter_id, parameters), guarded by self.lock

    def update_search_space(self, search_space):
        self.space = parse(search_space)

    def handles(self, search_space):
        """Said before anything starts; an empty text means yes."""
        return "" if parse(search_space).dimensions else "there is nothing to search."

    def generate_parameters(self, parameter_id, **kwargs):
        # One request, one thread; requests overlap. Random numbers come from the request's own
        # number, and after the last wait, so that a restart gives the same answer.
        parent = None
        while parameter_id >= self.founders:
            with self.lock:
                parent = self._best_before(parameter_id)
            try:
                # Never inside the lock: what is waited for needs it.
                self.wait_for(parameter_id - self.founders if parent is None else parent[1])
            except bq.ParentFailed:
                if parent is None:
                    break  # nothing to inherit: begin afresh
                with self.lock:
                    if parent in self.finished:  # else another request was quicker
                        self.finished.remove(parent)
                continue
            if parent is not None:
                break
            with self.lock:
                if self._best_before(parameter_id) is None:
                    break
        rng = self.rng(parameter_id)
        if parent is None:
            parameters = sample(self.space, rng)
        else:
            parameters = mutate(self.space, parent[2], rng)
            parameters["restore_path"] = self.save_path(parent[1])
        parameters["save_path"] = self.save_path(parameter_id)
        return parameters

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        # One at a time, in the order in which the results were committed.
        number = value["default"] if isinstance(value, dict) else value
        if number != number:
            return  # NaN
        with self.lock:
            self.finished.append((self.sign * number, parameter_id, dict(parameters)))
            self.finished.sort(key=lambda one: (-one[0], one[1]))
            del self.finished[16:]  # what is kept is bounded

    def _best_before(self, parameter_id):
        earlier = [one for one in self.finished if one[1] < parameter_id]
        return earlier[0] if earlier else None

    def state(self):
        """What a restart needs; JSON."""
        with self.lock:
            return {"finished": self.finished}

    def restore(self, state):
        with self.lock:
            self.finished = [(score, number, own) for score, number, own in state["finished"]]
'''

TEST = '''"""The tuner by itself: nothing is trained. Run it with ``pytest``."""

import json

from dispatcher.testing import assert_sound
from my_tuner import MyTuner
from tuners.testing import OpenGate, Search, with_gate

SPACE = {
    "lr": {"_type": "loguniform", "_value": [0.0001, 0.1]},
    "width": {"_type": "choice", "_value": [8, 16, 32]},
}


def make(failed=()):
    tuner = with_gate(MyTuner(founders=3), OpenGate(failed))
    tuner.update_search_space(SPACE)
    return tuner


def founders(tuner, scores):
    for number, score in enumerate(scores):
        parameters = tuner.generate_parameters(number)
        assert "restore_path" not in parameters
        if score is not None:
            tuner.receive_trial_result(number, parameters, score)
        tuner.trial_end(number, score is not None)


def test_a_child_starts_from_the_best_and_differs_in_one_thing():
    tuner = make()
    founders(tuner, [0.2, 0.9, 0.5])
    child = tuner.generate_parameters(3)
    assert child["restore_path"] == tuner.save_path(1)
    parent = tuner.finished[0][2]
    assert sum(child[name] != parent[name] for name in SPACE) == 1


def test_a_parent_that_cannot_bequeath_is_passed_over():
    tuner = make(failed={1})
    founders(tuner, [0.2, 0.9, 0.5])
    assert tuner.generate_parameters(3)["restore_path"] == tuner.save_path(2)


def test_without_any_parent_a_trial_begins_afresh():
    tuner = make(failed={0, 1, 2})
    founders(tuner, [None, None, None])
    assert "restore_path" not in tuner.generate_parameters(3)


def test_a_child_waits_for_a_founder():
    tuner = MyTuner(founders=1)
    tuner.update_search_space(SPACE)
    search = Search(tuner)
    search.ask(0)
    assert search.ask(1) is None
    search.end(0, 0.5)
    assert search.proposed[1]["restore_path"] == tuner.save_path(0)


def test_it_keeps_the_threading_contract():
    assert_sound(MyTuner, search_space=SPACE)


def test_a_restart_gives_the_same_answer():
    tuner = make()
    founders(tuner, [0.2, 0.9, 0.5])
    again = make()
    again.restore(json.loads(json.dumps(tuner.state())))
    assert again.generate_parameters(3) == tuner.generate_parameters(3)
'''

TRIAL = '''"""A trial: load what is inherited, train, report, save. Replace all of it."""

import bequeath as bq

parameters = bq.get_parameters()
weights = bq.load_weights()
skill = float(weights["skill"][0]) if weights is not None else 0.0

for _ in range(3):
    skill += (1 - skill) * min(0.5, 5 * parameters["lr"])
    bq.report_intermediate_result(skill)

import numpy as np

bq.save_weights({"skill": np.array([skill])})
bq.report_final_result(skill)
'''

EXPERIMENT = """experimentName: my_tuner
searchSpace:
  lr: {_type: loguniform, _value: [0.0001, 0.1]}
  width: {_type: choice, _value: [8, 16, 32]}
tuner:
  className: my_tuner:MyTuner
  classArgs: {founders: 4}
trialCommand: python3 trial.py
trialConcurrency: 2
maxTrialNumber: 20
"""

FILES = {
    "my_tuner.py": TUNER,
    "test_my_tuner.py": TEST,
    "trial.py": TRIAL,
    "experiment.yml": EXPERIMENT,
}


def write_skeleton(folder: Path) -> list[Path]:
    """Write the files into a new folder; return their paths.

    Raises:
        UserError: there is such a folder already, or it cannot be made.
    """
    try:
        folder.mkdir(parents=True)
        for name, text in FILES.items():
            (folder / name).write_text(text)
    except FileExistsError as error:
        raise UserError(f"{folder} is there already", hint="name a folder that is not") from error
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}") from error
    return [folder / name for name in FILES]
