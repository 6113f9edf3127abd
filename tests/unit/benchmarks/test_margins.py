"""One tuner against another: what counts as falling short, and how sure one must be."""

import pytest

from benchmarks.margins import shortfall, student


def test_the_bound_is_students():
    found = shortfall([1.0, 2.0, 3.0], [1.5, 2.0, 4.0], 0.0, 10.0)

    assert found.mean == pytest.approx(0.05)
    assert found.bound == pytest.approx(0.05 + 2.920 * 0.05 / 3**0.5)
    assert (found.seeds, found.equal) == (3, 1)


def test_better_than_the_peer_is_below_zero():
    found = shortfall([3.0] * 20, [2.0] * 20, 0.0, 10.0)

    assert found.mean == found.bound == pytest.approx(-0.1)
    assert found.within(0.0)


def test_an_even_mean_with_a_wide_spread_is_not_within():
    ours, theirs = [0.0, 1.0] * 10, [1.0, 0.0] * 10

    found = shortfall(ours, theirs, 0.0, 1.0)

    assert found.mean == pytest.approx(0.0)
    assert not found.within(0.05)


def test_the_bound_is_one_sided_at_five_percent():
    assert student(19) == 1.729
    assert student(31) == pytest.approx(1.6955, abs=1e-3)


@pytest.mark.parametrize(
    "ours, theirs, high",
    [([1.0], [1.0], 2.0), ([1.0, 2.0], [1.0], 2.0), ([1.0, 2.0], [1.0, 2.0], 0.0)],
)
def test_what_cannot_be_compared_is_refused(ours, theirs, high):
    with pytest.raises(ValueError):
        shortfall(ours, theirs, 0.0, high)
