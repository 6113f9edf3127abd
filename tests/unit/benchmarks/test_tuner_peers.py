"""Tuners in virtual time: both sides are led alike, and a verdict needs all seeds."""

import pytest

from benchmarks import tuner_peers
from benchmarks.peer_runs import PeerFailed
from benchmarks.peers.surrogates import CHAIN, CURVES, GRID, PROBLEMS, Best, Front
from benchmarks.peers.virtual_time import Piece, lead
from benchmarks.tuner_peers import CASES, judged
from benchmarks.tuner_searches import score
from tuners import space as spaces


class Steps:
    """Pieces of one unit each; ``wait`` lets none begin while another runs."""

    def __init__(self, *, wait=False, most=100):
        self.wait, self.most = wait, most
        self.running, self.widest, self.order = 0, 0, []

    def next(self):
        if (self.wait and self.running) or len(self.order) + self.running >= self.most:
            return None
        self.running += 1
        self.widest = max(self.widest, self.running)
        return Piece(1.0, len(self.order) + self.running)

    def done(self, piece):
        self.running -= 1
        self.order.append(piece.what)


def test_as_many_workers_and_pieces_as_there_are():
    steps = Steps()

    lead(steps, seed=1, workers=4, pieces=30)

    assert steps.widest == 4
    assert len(steps.order) == 30


def test_what_ends_behind_the_horizon_does_not_count():
    one, four = Steps(), Steps()

    assert lead(one, seed=1, workers=1, horizon=20.0) <= 20.0
    lead(four, seed=1, workers=4, horizon=20.0)

    assert 15 <= len(one.order) <= 25
    assert len(four.order) > 3 * len(one.order)


def test_what_does_not_fit_into_the_budget_is_not_begun():
    steps = Steps()

    lead(steps, seed=1, workers=4, budget=10.5)

    assert len(steps.order) == 10


def test_one_seed_is_one_order():
    orders = []
    for seed in (1, 1, 2):
        steps = Steps()
        lead(steps, seed=seed, workers=4, pieces=30)
        orders.append(steps.order)

    assert orders[0] == orders[1] != orders[2]


def test_a_search_that_stalls_is_no_result():
    with pytest.raises(RuntimeError, match="after 5 pieces"):
        lead(Steps(most=5), seed=1, workers=4, pieces=30)


def test_the_range_of_the_chain_is_what_its_best_and_worst_reach():
    nodes = list(CHAIN.space)
    greedy = dict.fromkeys(nodes, "conv3")
    for _ in range(3):
        for name in nodes:
            options = CHAIN.space[name]["_value"]
            greedy[name] = max(options, key=lambda one: CHAIN.value({**greedy, name: one}))

    assert 0.8 < CHAIN.value(greedy) <= 1.0


def test_the_range_of_the_grid_is_what_its_points_reach():
    values = [GRID.value(point) for point in spaces.grid(GRID.space)]

    assert (min(values), max(values), len(values)) == (GRID.low, GRID.high, 480)


def test_curves_cross():
    common = {"decay": 1e-4, "width": 300, "schedule": "cosine"}
    quick, good = {**common, "lr": 0.5}, {**common, "lr": 0.006}

    assert CURVES.value(quick, 1) > CURVES.value(good, 1)
    assert CURVES.value(quick, 64) < CURVES.value(good, 64)


def test_the_best_is_judged_by_what_was_seen():
    best = Best()
    best.take(0.9, 0.6)
    best.take(0.8, 0.8)

    assert best.true == 0.6


def test_the_area_of_a_front():
    front = Front([(0.5, 1.0), (1.0, 0.5), (0.4, 0.4)])

    assert front.area() == pytest.approx(0.75)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.ours.name}-{case.problem}")
def test_ours_answer_on_every_problem(case):
    if case.ours.name == "GP":
        pytest.importorskip("torch")
    one = PROBLEMS[case.problem]
    reached = score(
        case.ours.name,
        case.ours.arguments,
        case.problem,
        7,
        workers=case.budget.workers,
        pieces=min(case.budget.pieces, 12 if case.ours.name == "GP" else 40),
        horizon=min(case.budget.horizon, 60.0),
        lookahead=case.budget.lookahead,
    )

    assert one.low <= reached <= one.high


def test_less_than_all_seeds_are_no_verdict():
    few = judged(CASES[0], "1.0", [0.5, 0.6, 0.7], [0.5, 0.6, 0.7])
    enough = judged(CASES[0], "1.0", [0.5, 0.6] * 10, [0.5, 0.6] * 10)
    worse = judged(CASES[0], "1.0", [0.5, 0.6] * 10, [0.6, 0.7] * 10)

    assert (few["ok"], enough["ok"], worse["ok"]) == (None, True, False)
    assert "the same in 20 of 20 seeds" in enough["detail"]


def test_a_peer_that_is_not_to_be_had_is_a_row_without_a_figure(monkeypatch):
    def failing(environment, script, arguments, limit_s):
        raise PeerFailed("no network")

    monkeypatch.setattr(tuner_peers, "answer", failing)

    rows = tuner_peers.compared([0, 1])

    assert len(rows) == len(CASES)
    assert all(one["ok"] is None and one["detail"] == "no network" for one in rows)
