"""The row on inheritance follows the study, and does not let missing arrivals flatter us."""

from benchmarks.digits import judged


def study(ours: list[float], theirs: list[float], budget: float = 15.0) -> dict:
    """Searches that reach 0.9 at these core-seconds."""

    def paths(times: list[float]) -> list[list[list[float]]]:
        return [[[0.1, 0.5, 0.5], [at, 0.9, 0.9]] for at in times]

    sweep = {"40": paths(theirs), "80": paths([14.9] * len(theirs))}
    return {"budget_s": budget, "best_epochs": 40, "sweep": sweep, "inheriting": paths(ours)}


def test_four_times_faster_meets_the_target():
    one = judged(study([2.0, 2.1, 1.9, 2.0, 2.0], [8.0, 8.1, 7.9, 8.0, 8.0]))

    assert one["ok"] is True
    assert one["measured"].startswith("0.25 ")


def test_twice_as_fast_does_not():
    assert judged(study([4.0, 4.1, 3.9, 4.0, 4.0], [8.0, 8.1, 7.9, 8.0, 8.0]))["ok"] is False


def test_a_wide_interval_does_not():
    assert judged(study([0.5, 9.0, 0.5, 9.0, 0.5], [8.0, 8.1, 7.9, 8.0, 8.0]))["ok"] is False


def test_a_search_of_ours_that_never_arrived_does_not():
    one = judged(study([0.1, 0.1, 0.1, 0.1, 0.1, 16.0], [14.0] * 6))

    assert one["ok"] is False
    assert "reached by 5 of 6 seeds with inheritance" in one["detail"]


def test_four_seeds_are_too_few():
    assert judged(study([2.0, 2.1, 1.9, 2.0], [8.0, 8.1, 7.9, 8.0]))["ok"] is False
