"""The first example: its tuner waits and chooses, its trial goes on where the parent stopped."""

from __future__ import annotations

from tuners.testing import OpenGate, with_gate


def test_each_child_starts_from_the_better_of_two_that_it_waited_for(example):
    gate = OpenGate()
    tuner = with_gate(example("hello", "tuner").BetterOfTwo(), gate)
    for n, loss in enumerate([0.5, 0.3, 0.4, 0.2]):
        tuner.generate_parameters(n)
        tuner.receive_trial_result(n, {}, loss)
    assert tuner.generate_parameters(4)["restore_path"] == "trials/1"
    assert gate.waited[-1] == (1, 2)
    assert "restore_path" not in tuner.generate_parameters(0)


def test_a_child_of_failed_parents_starts_from_nothing(example):
    tuner = with_gate(example("hello", "tuner").BetterOfTwo(), OpenGate(failed={0, 1}))
    assert "restore_path" not in tuner.generate_parameters(3)


def test_a_child_goes_on_where_its_parent_stopped(example, monkeypatch):
    trial = example("hello", "trial")
    kept, losses = {}, []
    monkeypatch.setattr(trial.bq, "report_intermediate", losses.append)
    monkeypatch.setattr(trial.bq, "load_weights", lambda into: into.update(kept))
    monkeypatch.setattr(trial.bq, "save_weights", kept.update)
    first = trial.train({"rate": 0.5})
    second = trial.train({"rate": 0.5})
    assert second < first < losses[0]
    assert losses == sorted(losses, reverse=True)
