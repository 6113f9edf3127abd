"""What a trial, or a gate, costs on this machine at the least: commits, frames and wake-ups.

A figure in milliseconds judges the machine: the same code was seen to take twice as long on
another one of its kind. So a row divides by a floor that is measured beside it: other processes
that make the same SQLite commits, send the same frames over the same transport and wake the same
threads, without the product around them (:mod:`benchmarks.bare_head`,
:mod:`benchmarks.bare_peers`).

How many there are of each is written down here, and not taken from the run: a product that
commits twice as often must not get a floor that does so, too. The numbers are those of the product
when they were written down (:mod:`benchmarks.counting`), and rows show what was counted in their
own run beside them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

MS = 1000.0
LIMIT_S = 300.0
WARM = 50


@dataclass(frozen=True)
class Rows:
    """Of one commit: rows appended to the journal, replaced and changed in the read models, and
    metrics."""

    journal: int
    replaced: int
    changed: int
    metrics: int = 0


@dataclass(frozen=True)
class Turn:
    """One turn of the head: an order to a peer (or none), that many bytes back, one commit.

    Attributes:
        peer: ``tuner`` or ``agent``.
        sent: bytes of the order; 0 if what comes follows from an earlier one.
        received: bytes to wait for.
        rows: of the commit.
        durable: whether it waits for the disk.
        reports: frames that the trial sends its agent.
        begin: what an agent has to do first: 0 nothing, 1 take a connection, 2 start a process.
        frames: in how many frames the agent answers.
    """

    peer: str
    sent: int
    received: int
    rows: Rows
    durable: bool = True
    reports: int = 1
    begin: int = 0
    frames: int = 1


@dataclass(frozen=True)
class Round:
    """Turns that a number of trials take together."""

    trials: int
    turns: tuple[Turn, ...]

    def each(self) -> dict[str, float]:
        """What it does for each trial."""
        rows = [turn.rows for turn in self.turns]
        totals = {
            "commits": len(self.turns),
            "journal rows": sum(r.journal for r in rows),
            "other rows": sum(r.replaced + r.changed + r.metrics for r in rows),
            "frames out": sum(turn.sent > 0 for turn in self.turns),
            "frames in": len(self.turns),
        }
        return {name: total / self.trials for name, total in totals.items()}


#: Two trials at a time inside workers, whose facts arrive in company: six commits for four trials.
IN_PROCESS = Round(
    4,
    (
        Turn("tuner", 196, 212, Rows(4, 4, 2)),
        Turn("agent", 102, 95, Rows(4, 4, 3, 1)),
        Turn("tuner", 196, 212, Rows(4, 4, 1)),
        Turn("agent", 102, 95, Rows(4, 4, 3, 1)),
        Turn("tuner", 196, 212, Rows(4, 4, 1)),
        Turn("agent", 102, 95, Rows(4, 4, 2, 2)),
    ),
)

#: A fork connects to the agent, gets its parameters, reports and ends.
FORKED = Round(
    1,
    (
        Turn("tuner", 146, 158, Rows(2, 2, 1)),
        Turn("agent", 81, 41, Rows(1, 2, 1), begin=1, frames=2),
        Turn("agent", 0, 41, Rows(3, 3, 1, 1)),
    ),
)

#: A fresh process is started and reaped besides; its result and its end come one by one.
FRESH = Round(
    1,
    (
        Turn("tuner", 142, 152, Rows(2, 2, 1)),
        Turn("agent", 80, 29, Rows(1, 2, 1), durable=False, begin=2, frames=3),
        Turn("agent", 0, 29, Rows(1, 1, 0, 1)),
        Turn("agent", 0, 29, Rows(2, 2, 1)),
    ),
)

#: Metrics of a floor's trial: so many that the clock of CPU time, which ticks each 10 ms, can tell
#: what one of them takes. Each is a frame of the trial, 12 bytes of the agent's, and a row.
METRICS = 1_000


def with_metrics(metrics: int) -> Round:
    """One trial inside a worker that reports so many beside its result."""
    tuner = Turn("tuner", 146, 158, Rows(3, 3, 1))
    bytes_in = 71 + 12 * metrics
    rows = Rows(3, 3, 2, 1 + metrics)
    return Round(1, (tuner, Turn("agent", 76, bytes_in, rows, reports=1 + metrics)))


def cpu_ms(one: Round, trials: int) -> dict[str, float]:
    """Milliseconds of CPU a trial, of head, tuner and agent and together, and waits a trial."""
    words = [turn.received for turn in one.turns if turn.peer == "tuner"]
    result = _measure(
        what="rounds",
        turns=[told(turn) for turn in one.turns],
        count=trials // one.trials,
        warm=WARM,
        word_bytes=words[0] // 2,
    )
    made = trials // one.trials * one.trials
    parts = dict(zip(("head", "tuner", "agent"), result["cpu_s"], strict=True))
    each = {who: seconds / made * MS for who, seconds in parts.items()}
    return each | {"cpu": sum(each.values()), "waits": sum(result["waits"]) / made}


def pairs_s(count: int, pause_s: float) -> list[float]:
    """Seconds from a commit to the commit of what a thread said that it let go, ``count`` times."""
    latencies: list[float] = _measure(what="pairs", count=count, pause_s=pause_s)["latencies_s"]
    return latencies


@dataclass(frozen=True)
class Crowd:
    """Seconds after the commit at which the first and the last of a crowd were committed, and how
    long metrics waited for theirs meanwhile."""

    first_s: float
    last_s: float
    waits_s: list[float]


def crowd(count: int, metrics_every_s: float = 0.0) -> Crowd:
    """Let ``count`` blocked threads go."""
    return Crowd(**_measure(what="crowd", count=count, metrics_every_s=metrics_every_s))


def told(turn: Turn) -> dict[str, Any]:
    """A turn as the bare head reads it."""
    frame = turn.received - 12 * (turn.reports - 1)
    order = (turn.reports, frame, turn.frames, turn.begin) if turn.peer == "agent" else (1, 0, 0, 0)
    return {
        "peer": turn.peer,
        "order": order if turn.sent else None,
        "sent": turn.sent,
        "received": turn.received,
        "rows": list(asdict(turn.rows).values()),
        "durable": turn.durable,
    }


def _measure(**options: object) -> dict[str, Any]:
    """In a process of its own, as the product is."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bare_head", json.dumps(options)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=LIMIT_S,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result
