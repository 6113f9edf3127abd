"""Reports of stacks: equal ones together, and the author's line in a sentence."""

from __future__ import annotations

import sys

from dispatcher.tuner_host.stacks import together, where


def test_those_who_stand_in_the_same_place_share_a_text() -> None:
    same = "is at tuner.py:39 (event.wait())\n  File ..."
    found = {n: f"request {n} {same}" for n in range(12)}
    found |= {40: "request 40 waits for 3 in wait_for", 41: "the delivery of trial 41 is at x"}
    assert together(found).split("\n\n") == [
        f"requests 0, 1, 2, 3, 4, 5, 6, 7 and 4 more: each {same}",
        "request 40 waits for 3 in wait_for",
        "the delivery of trial 41 is at x",
    ]


def test_a_place_is_the_authors_line() -> None:
    here = where(sys._getframe())
    assert here.startswith("`here = where(sys._getframe())` at test_stacks.py:")
    assert where(None) == ""
