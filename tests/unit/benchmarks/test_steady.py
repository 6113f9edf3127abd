"""The rate of a peer leaves its warm-up out and counts everything after it."""

import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).parents[3] / "benchmarks" / "peers"


@pytest.fixture
def steady(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    monkeypatch.delitem(sys.modules, "steady", raising=False)
    from steady import steady

    return steady


def test_a_slow_start_is_not_charged(steady):
    ends = [100.0, 100.0, *(100.0 + 0.5 * n for n in range(1, 9))]

    result = steady("p", "pytest", ends, workers=2)

    assert result["trials"] == 8
    assert result["per_second"] == pytest.approx(2.0)


def test_a_tenth_of_many_trials_is_warm_up(steady):
    slow = [float(n) for n in range(20)]
    fast = [19.0 + 0.1 * n for n in range(1, 181)]

    result = steady("p", "pytest", fast + slow, workers=2)

    assert result["trials"] == 180
    assert result["per_second"] == pytest.approx(10.0)


def test_too_few_trials_have_no_rate(steady):
    with pytest.raises(ValueError, match="too few"):
        steady("p", "pytest", [1.0, 2.0, 3.0], workers=2)
