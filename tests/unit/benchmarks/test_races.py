"""Races on the clock: what a program says and leaves, how long it took, and who was first."""

import subprocess
import sys
import time

import numpy as np
import pytest

from benchmarks import architecture, pbt
from benchmarks.environments import OWN
from benchmarks.peer_runs import PeerFailed
from benchmarks.plain_digits import FILE, plain_digits, write_digits
from benchmarks.races import architecture_ours, clock, grown, member, running
from benchmarks.races.judging import judged, lead
from benchmarks.races.running import ALIKE, HERE, Finish, Racer, race, run
from benchmarks.tuner_nas import contestants

SAYS = """
import signal, sys, threading
from benchmarks.races import clock
clock.trial_begins()
if clock.seed() == 2:
    sys.exit("it has no heart")
threading.Event().wait(0.2)
clock.hear(0.84, 0.85)
if clock.seed() == 1:
    clock.hear(0.85, 0.85)
signal.pause()
"""


@pytest.fixture
def racer(tmp_path):
    """A program that arrives with seed 1, fails with 2, and never arrives with others."""
    program = tmp_path / "program.py"
    program.write_text(SAYS)
    return Racer("a program", OWN, str(program))


@pytest.fixture
def raced(monkeypatch, tmp_path):
    """What trials of a race find around them."""
    monkeypatch.setenv(clock.FOLDER, str(tmp_path))
    monkeypatch.setenv(clock.SEED, "7")
    return tmp_path


# ---- a run -------------------------------------------------------------------------------------


def test_a_run_ends_when_its_program_knows_of_a_good_result(racer, tmp_path):
    one = run(racer, 1, 30.0, tmp_path / "digits.npz")

    assert one.arrived
    assert 0.2 <= one.own_s < one.wall_s < 30


def test_a_run_that_does_not_arrive_counts_as_its_budget(racer, tmp_path):
    """Catches that 0.84 counts as an arrival."""
    one = run(racer, 3, 3.0, tmp_path / "digits.npz")

    assert not one.arrived
    assert one.wall_s == 3.0


def test_a_program_that_ends_has_failed_and_is_no_slow_one(racer, tmp_path):
    with pytest.raises(PeerFailed, match=r"exit code 1 before it arrived: it has no heart"):
        run(racer, 2, 30.0, tmp_path / "digits.npz")


def test_an_environment_that_cannot_be_made_is_a_reason_and_no_end(monkeypatch, tmp_path):
    """Catches an error of pip that ends the race of the others."""

    def broken(name):
        raise OSError("no room")

    monkeypatch.setattr(running, "python_of", broken)
    monkeypatch.setattr(running, "write_digits", lambda target: None)

    assert race([Racer("a peer", "none", "none.py")], [1, 3], 1.0) == {
        "a peer": "its environment could not be made: no room"
    }


def test_racers_take_turns_after_a_run_that_does_not_count(monkeypatch):
    order = []

    def noted(racer, seed, budget_s, digits):
        order.append((racer.name, seed, budget_s))
        return Finish(1.0, 1.0, True)

    monkeypatch.setattr(running, "run", noted)
    monkeypatch.setattr(running, "write_digits", lambda target: None)
    found = race([Racer("a", OWN, ""), Racer("b", OWN, "")], [5, 6], 40.0)

    assert order == [
        ("a", 1005, 10.0), ("b", 1005, 10.0), ("b", 5, 40.0), ("a", 5, 40.0), ("a", 6, 40.0),
        ("b", 6, 40.0),
    ]  # fmt: skip
    assert {name: len(finishes) for name, finishes in found.items()} == {"a": 2, "b": 2}


def test_the_first_trial_alone_notes_when_it_begins(raced):
    before = time.time()
    clock.trial_begins()
    note = raced / clock.BEGAN
    assert before <= float(note.read_text()) <= time.time()

    note.write_text("earlier")
    clock.trial_begins()
    assert note.read_text() == "earlier"


# ---- a verdict ---------------------------------------------------------------------------------


def test_a_peer_that_takes_twice_as_long_is_behind_by_two():
    one = lead([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])

    assert one.ratio == 2.0
    assert one.low <= 2.0 <= one.high


def test_an_interval_of_pairs_that_differ_either_way_holds_one():
    """Catches an interval of the mean's error where that of the ratio is wanted."""
    one = lead([1.0, 2.0, 3.0, 4.0], [4.0, 1.0, 3.5, 3.0])

    assert one.low < 1 < one.high


def finishes(*seconds, arrived=True):
    return [Finish(one, one - 0.5, arrived) for one in seconds]


def verdict(ours, theirs, least=None):
    return judged("x", ours, theirs, least=least, budget_s=40.0, more="so it is")


def test_first_is_who_is_first_for_sure():
    assert verdict(finishes(1, 2, 3), finishes(4, 5, 6))["ok"] is True
    assert verdict(finishes(1, 2, 3), finishes(1, 2, 3.5))["ok"] is False


def test_three_times_less_is_judged_by_the_medians():
    assert verdict(finishes(1, 2, 3), finishes(5, 6, 7), least=3.0)["ok"] is True
    assert verdict(finishes(1, 2, 3), finishes(5, 5.9, 7), least=3.0)["ok"] is False


def test_a_row_says_who_did_not_arrive():
    detail = verdict(finishes(1, 2), finishes(40.0, 40.0, arrived=False))["detail"]

    assert "Arrived within 40 s: 2 of 2 and 0 of 2; others count as 40 s" in detail


def test_who_could_not_run_is_a_row_without_a_figure():
    one = verdict(finishes(1, 2), "no room")

    assert (one["measured"], one["ok"], one["detail"]) == ("not measured", None, "no room")


def test_seeds_are_fresh_and_ten():
    """Catches seeds on which a task was settled, or which another study has used."""
    used = {*range(5), *range(10, 15), *range(20, 25), *range(30, 35), *range(40, 45)}
    for section in (pbt, architecture):
        assert len(section.SEEDS) == 10
        assert not used & set(section.SEEDS)
        assert max(section.SEEDS) < min(section.QUICK_SEEDS)
    assert not set(pbt.SEEDS) & set(architecture.SEEDS)


# ---- the trials --------------------------------------------------------------------------------


def test_programs_are_there():
    for section in (pbt, architecture):
        for one in section.RACERS:
            assert (HERE / one.program).is_file()


def test_trials_load_nothing_that_peers_have_not():
    """Catches an import of scikit-learn, or of our own packages, where a peer's trial begins."""
    code = (
        "import sys; from benchmarks.races import grown, member; "
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ALIKE, capture_output=True, text=True, check=True
    )

    loaded = set(done.stdout.split())
    assert "numpy" in loaded
    assert not loaded & {"sklearn", "scipy", "tuners", "dispatcher", "threadpoolctl", "msgspec"}


def test_digits_of_a_file_are_those_of_scikit_learn(monkeypatch, tmp_path):
    pictures, digits = plain_digits()
    write_digits(tmp_path / "digits.npz")
    monkeypatch.setenv(FILE, str(tmp_path / "digits.npz"))

    again = plain_digits()
    assert np.array_equal(again[0], pictures)
    assert np.array_equal(again[1], digits)


def test_a_member_goes_on_from_what_was_written(raced, monkeypatch):
    monkeypatch.setattr(member, "EPOCHS", 1)
    parameters = {name: (low + high) / 2 for name, (_, low, high) in member.SPACE.items()}
    state, _ = member.generation(parameters, None, 0, 1)
    member.write(state, raced)

    kept = member.read(raced)
    assert [np.array_equal(one, two) for one, two in zip(kept, state, strict=True)] == [True, True]
    on, _ = member.generation(parameters, kept, 0, 2)
    assert not np.array_equal(on[0], state[0])


def test_hyperparameters_that_left_their_space_are_brought_back(raced, monkeypatch):
    """Catches a momentum of 1.19, with which Ray Tune's explored members would diverge."""
    monkeypatch.setattr(member, "EPOCHS", 1)
    edge = {name: high for name, (_, _, high) in member.SPACE.items()}
    beyond = {name: 1.2 * high for name, high in edge.items()}

    assert np.array_equal(
        member.generation(beyond, None, 3)[0][0],
        member.generation(edge, None, 3)[0][0],
        equal_nan=True,
    )


def test_the_race_of_architectures_takes_the_settings_of_the_study():
    """Catches settings that were chosen for the race."""
    assert architecture_ours.MORPHING == contestants.MORPHING


def test_lessons_make_a_network_better(raced, monkeypatch):
    monkeypatch.setattr(grown, "STEPS", 40)
    parameters = {"depth": 1, "width1": 64}
    weights, first = grown.lesson(parameters, None, 0, 1)
    for number in range(2, 5):
        weights, last = grown.lesson(parameters, weights, 0, number)

    assert last > first > 0.1
