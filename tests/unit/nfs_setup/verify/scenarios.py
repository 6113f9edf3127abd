"""A survey in which all is well between two clients, to be spoilt in one place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nfs_setup.verify import facts
from nfs_setup.verify.facts import Clock, Locked, MachineFacts, Reread, Survey
from nfs_setup.verify.habits import HABITS

AROUND = facts.Surroundings(
    host="one", uid=1000, gid=1000, found="folder", owner=1000, group=1000, mode=0o2770,
    kind="nfs4", device="server:/w", point="/mnt/w", options=("rw", "hard", "vers=4.2"),
    exports=(), total_bytes=100 << 30, free_bytes=50 << 30, inodes=10**6, inodes_free=10**5,
)  # fmt: skip
BEGUN = facts.Begun(1000, 1000, True, True, 1000, -0.01, 0.01, 0)
HELD = facts.Held(True, False, "")
BIG = facts.BigFile(64 << 20, 0.5, "d")


def machine(name: str, other: str) -> MachineFacts:
    """One of two, for whom all is well."""
    return MachineFacts(
        name,
        "/mnt/w",
        surroundings=AROUND,
        begun=BEGUN,
        clock=Clock(-0.01, 0.01),
        habits=facts.Habits(dict.fromkeys(HABITS, "yes")),
        pace=facts.Pace(20, 0.01, 0.02, 0.005, 0.01),
        written=BIG,
        published=facts.Published({"new": "d"}, 1000, 1000),
        seen=facts.Seen(
            {
                f"{other}/{case}": 0.02
                for case in ("new", "announced", "sought", "replaced", "listed")
            },
            {},
            {},
            {other: "1000:1000"},
        ),
        churned=facts.Churned(100, {other: 90}, {other: 0}, {other: 0}, {other: 2}, {other: 0}),
    )


def well() -> Survey:
    """Two clients of one share, without a fault."""
    return Survey(
        [machine("one", "two"), machine("two", "one")],
        one_host=False,
        watched_s=80.0,
        rereads=[Reread("one", "two", BIG), Reread("two", "one", BIG)],
        locks=[
            Locked("one", "two", HELD, facts.Held(False, True, "")),
            Locked("two", "one", HELD, facts.Held(False, True, "")),
        ],
    )


def around(**changes: Any) -> Survey:
    """The first machine's surroundings are different."""
    survey = well()
    survey.machines[0].surroundings = replace(AROUND, **changes)
    return survey


def begun(**changes: Any) -> Survey:
    """What the first machine made is different."""
    survey = well()
    survey.machines[0].begun = replace(BEGUN, **changes)
    return survey


def refused(part: str, code: str, doing: str = "begin", text: str = "") -> Survey:
    """A probe of the first machine failed."""
    survey = well()
    setattr(survey.machines[0], part, facts.Failure(doing, code, text))
    return survey


def seen(case: str, delay_s: float) -> Survey:
    """The first machine saw one case of the second's at another time."""
    survey = well()
    found = survey.machines[0].seen
    assert isinstance(found, facts.Seen)
    found.delays_s[f"two/{case}"] = delay_s
    return survey


def habit(name: str, answer: str) -> Survey:
    """The first machine's file system has another habit."""
    survey = well()
    found = survey.machines[0].habits
    assert isinstance(found, facts.Habits)
    found.found[name] = answer
    return survey


def churned(**counts: int) -> Survey:
    """The first machine counted something else while files were replaced."""
    survey = well()
    found = survey.machines[0].churned
    assert isinstance(found, facts.Churned)
    for name, count in counts.items():
        getattr(found, name)["two"] = count
    return survey
