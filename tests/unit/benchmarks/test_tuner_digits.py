"""Inheriting tuners against random search: budgets, verdicts, and the study in a short form."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.tuner_digits import hyperparameters, page, picture
from benchmarks.tuner_digits.baseline import Sweep
from benchmarks.tuner_digits.data import LEARN, data
from benchmarks.tuner_digits.hyperparameters import BUDGET, CONTESTANTS, JUDGING, Contestant
from benchmarks.tuner_digits.network import accuracy, fresh, softmax, train
from benchmarks.tuner_digits.searching import Better, Found, Outcome, search
from benchmarks.tuner_digits.verdict import compare, judged
from tuners import make_builtin

CONFIG = {"lr": 0.3, "momentum": 0.5, "decay": 1e-5, "noise": 0.3, "moved": 0.7, "dropout": 0.1}
RANDOM = Contestant("random search", "Random", epochs=18)


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for one another take minutes on a busy machine."""
    with threadpool_limits(1):
        yield


def found(*valid):
    return [Found((Better(1.0, one, one - 0.1),)) for one in valid]


class Counting:
    """A task whose state is how many ancestors a trial has; more are better."""

    def __init__(self):
        self.costs = []

    def cost(self, parameters):
        return 3.0

    def run(self, parameters, inherited, dice):
        self.costs.append(3.0)
        ancestors = 0 if inherited is None else inherited + 1
        return Outcome(ancestors, float(ancestors), -float(ancestors))


# ---- a search ----------------------------------------------------------------------------------


def counted(budget):
    tuner = make_builtin("PBT", {"population_size": 4, "seed": 1})
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    task = Counting()
    return search(tuner, task, seed=1, budget=budget, lookahead=8), task


def test_a_search_spends_its_budget_and_no_more():
    _, task = counted(budget=100.0)

    assert sum(task.costs) == 99.0


def test_children_begin_with_what_their_parents_left():
    assert counted(budget=60.0)[0].valid >= 3.0


def test_what_is_handed_out_is_the_best_seen_so_far():
    one, _ = counted(budget=60.0)

    assert [at.valid for at in one.path] == sorted({at.valid for at in one.path})
    assert one.at(2.9) is None
    assert one.at(3.0).valid == 0.0
    assert one.at(60.0).valid == one.valid == -one.test


# ---- a verdict ---------------------------------------------------------------------------------


def test_four_of_five_seeds_are_enough_and_three_are_not():
    baseline = found(0.5, 0.5, 0.5, 0.5, 0.5)

    four = judged("PBT", found(0.6, 0.6, 0.6, 0.6, 0.4), baseline)
    three = judged("PBT", found(0.6, 0.6, 0.6, 0.4, 0.4), baseline)

    assert (four["ok"], three["ok"]) == (True, False)
    assert four["measured"] == "better on 4 of 5"


def test_even_is_not_better():
    assert compare(found(*[0.5] * 5), found(*[0.5] * 5)).valid == 0


def test_the_test_accuracy_is_told_beside_it():
    one = judged("PBT", [Found((Better(1.0, 0.9, 0.1),))], [Found((Better(1.0, 0.8, 0.2),))])

    assert "in test on 0" in one["detail"]


def test_the_baseline_is_the_length_that_suits_it_best():
    assert Sweep({20: found(0.5, 0.9), 60: found(0.8, 0.8), 240: found(0.7, 0.7)}).chosen == 60


def test_all_lengths_of_random_search_spend_the_whole_budget():
    for one in hyperparameters.random_searches(BUDGET):
        assert BUDGET % (one.epochs + JUDGING) == 0


def test_as_good_after_counts_those_that_never_are_with_the_whole_budget():
    ours = [Found((Better(10.0, 0.4, 0.0), Better(30.0, 0.6, 0.0)))] * 2 + found(0.1)

    assert page.as_good_after(ours, found(0.5, 0.5, 0.5), 100.0) == pytest.approx(0.3)
    assert page.as_good_after(found(0.1), found(0.5), 100.0) == 1.0


# ---- the network -------------------------------------------------------------------------------


def test_shares_add_up_to_one():
    assert np.allclose(softmax(np.array([[1.0, 2.0], [500.0, -500.0]])).sum(1), 1.0)


def test_training_leaves_what_it_inherited_as_it_was():
    begun = fresh(np.random.default_rng(1))
    kept = begun[0].copy()

    trained = train(begun, CONFIG, 1, np.random.default_rng(1))

    assert np.array_equal(begun[0], kept)
    assert not np.array_equal(trained[0], kept)
    assert not begun[1].any()
    assert trained[1].any()


def test_inherited_weights_are_gone_on_with():
    dice = np.random.default_rng(1)
    parent = train(fresh(dice), CONFIG, 20, dice)

    child, orphan = (
        train(one, CONFIG, 2, np.random.default_rng(2)) for one in (parent, fresh(dice))
    )

    assert accuracy(child, data().valid) > accuracy(orphan, data().valid) + 0.05


def test_nobody_learns_from_pictures_that_are_judged_by():
    digits = data()

    assert digits.learn.shape[1] == len(digits.wanted) == LEARN
    assert len(digits.valid.digits) + len(digits.test.digits) == 4 * (1797 - LEARN)


# ---- the study, in a short form ----------------------------------------------------------------


@pytest.mark.parametrize("contestant", [RANDOM, *CONTESTANTS], ids=lambda one: one.label)
def test_every_contestant_finds_something_within_a_small_budget(contestant):
    one, core_s = hyperparameters.found_by(contestant, seed=100, budget=100)

    assert 0.1 < one.valid <= 1.0
    assert 0 < one.path[-1].spent <= 100
    assert core_s > 0


def test_one_seed_is_one_study():
    asha = CONTESTANTS[-1]

    assert (
        hyperparameters.found_by(asha, 100, budget=60)[0]
        == hyperparameters.found_by(asha, 100, budget=60)[0]
        != hyperparameters.found_by(asha, 101, budget=60)[0]
    )


def test_a_study_is_rows_tables_and_a_picture(tmp_path, monkeypatch):
    target = tmp_path / "docs" / "tuner-results.md"
    target.parent.mkdir()
    target.write_text(
        "before\n<!-- hyperparameters -->\nold\n<!-- end of hyperparameters -->\nafter\n"
    )
    monkeypatch.setattr(page, "PAGE", target)
    monkeypatch.setattr(page, "IMAGES", target.parent / "images")
    random = hyperparameters.random_searches(BUDGET)
    done = [hyperparameters.Searches(found(*[0.5] * 5), 1.0) for _ in random]
    done += [hyperparameters.Searches(found(0.6, 0.6, 0.6, 0.6, 0.4), 1.0) for _ in CONTESTANTS]

    rows = hyperparameters.reported(done, BUDGET, document=True)

    text = target.read_text()
    assert [row["ok"] for row in rows] == [True] * 4
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| PBT | 4 of 5 | 4 of 5 |" in text
    assert "**0.6000** / **0.5000**" in text
    assert [one.read_bytes()[:4] for one in (target.parent / "images").iterdir()] == [b"\x89PNG"]


def test_a_page_without_the_marks_of_a_study_is_left_alone(tmp_path):
    target = tmp_path / "page.md"
    target.write_text("text")

    with pytest.raises(ValueError, match="has no <!-- mine -->"):
        page.write("mine", ["line"], target)

    assert target.read_text() == "text"


def test_lines_of_a_picture_begin_where_all_seeds_have_something():
    late = Found((Better(50.0, 0.5, 0.5),))
    early = Found((Better(1.0, 0.3, 0.3), Better(60.0, 0.7, 0.7)))

    spent, seen = picture.means([late, early], 100.0)

    assert spent[0] == 50.0
    assert seen[0] == [0.5, 0.3]
    assert seen[-1] == [0.5, 0.7]
