"""``dispatcher.testing``: ``bequeath tuner check`` as one call in an author's test."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from dispatcher.errors import UserError
from dispatcher.testing import assert_sound, rehearse
from tuners import RandomTuner, Tuner

SPACE = {"lr": {"_type": "uniform", "_value": [0, 1]}}


class Sound(Tuner):
    def __init__(self, most=1.0):
        self.most = most

    def generate_parameters(self, parameter_id):
        if parameter_id > 2:
            self.wait_for(parameter_id - 2, fallback=None)
        return {"lr": self.most, "save_path": self.save_path(parameter_id)}

    def receive_trial_result(self, parameter_id, parameters, value):
        assert parameters["lr"] <= 2


class Forgetful(Sound):
    def receive_trial_result(self, parameter_id, parameters, value):
        if value > 0.5:
            raise KeyError("half")


class Outer:
    class Inner(Sound):
        pass


def test_one_that_keeps_the_contract_passes():
    report = assert_sound(Sound, class_args={"most": 0.5}, search_space=SPACE, trials=24)
    assert report.trials == 24
    assert report.waits > 0
    assert report.faults == ()
    assert report.comes_back_by == "a repetition of its calls"


def test_one_that_does_not_fails_with_sentences_and_tracebacks():
    with pytest.raises(AssertionError) as caught:
        assert_sound(Forgetful, search_space=SPACE, trials=24)
    text = str(caught.value)
    assert "raised KeyError: 'half'" in text
    assert 'raise KeyError("half")' in text  # the line of the author's code
    assert [one.kind for one in rehearse(Forgetful, trials=24).faults] == ["raised"] * 3


@pytest.mark.parametrize("tuner", [Outer.Inner, RandomTuner, f"{__file__}:Sound"])
def test_what_may_be_named(tuner):
    assert rehearse(tuner, search_space=SPACE, trials=8).faults == ()


def test_a_class_of_a_program(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from tuners import RandomTuner\nclass Mine(RandomTuner):\n    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    mine = importlib.import_module("mine").Mine
    monkeypatch.setattr(mine, "__module__", "__main__")  # as `python mine.py` has it
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "mine.py"))
    assert rehearse(mine, search_space=SPACE, trials=8).faults == ()


def test_what_no_other_process_can_find():
    class Local(Sound):
        pass

    with pytest.raises(UserError, match="defined inside a function"):
        rehearse(Local)
    with pytest.raises(UserError, match="is in no file"):
        rehearse(int)
    with pytest.raises(UserError, match="takes no argument 'least'"):
        rehearse(Sound, class_args={"least": 1})


def test_a_file_without_a_guard_is_rehearsed_once(tmp_path):
    """Mutation: the tuner host imports the file, which rehearses again, and so on."""
    (tmp_path / "mine.py").write_text(
        "from dispatcher.testing import rehearse\n"
        "from tuners import RandomTuner\n"
        "class Mine(RandomTuner):\n"
        "    pass\n"
        "print(*(fault.details for fault in rehearse(Mine, trials=8).faults))\n"
    )
    done = subprocess.run(
        [sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert "mine.py starts an experiment when it is imported" in done.stdout, done
