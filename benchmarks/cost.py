"""What a trial costs head, tuner host and agent in CPU time, beside floors of the same run.

The least of three runs each, in turns: what else goes on in the machine can only add to it.
"""

from __future__ import annotations

from typing import Any

from benchmarks import floors
from benchmarks.dispatch import experiment
from benchmarks.floors import Round
from benchmarks.rows import Row, row
from benchmarks.run_experiment import PARTS

MS = 1000.0
ROUNDS = 3
TRIALS_METRICS = 100  # of ``empty:train_with_metrics``
WHAT = "CPU of head, tuner host and agent together"

#: Times the floor. Chosen as benchmarks/README.md tells.
IN_PROCESS, FORKED, FRESH, METRIC = 3.6, 6.0, 7.6, 11.0


def run(*, quick: bool = False) -> list[Row]:
    """All rows; ``quick`` runs fewer trials."""
    share = 4 if quick else 1
    many = 3_000 if quick else 10_000
    marks = [1_000, 1_500, many - 500, many]
    warm, floor = beside(
        floors.IN_PROCESS, 4_000 // share, trials=many, reuse="inProcess", marks=marks
    )
    early, late = (least(warm, *pair) for pair in ((1_000, 1_500), (many - 500, many)))
    in_process = times_floor(
        "in-process trial",
        (IN_PROCESS, "1.5 ms"),
        (least(warm, 1_000, many), floor),
        [parts(warm, 1_000, many), counted(floors.IN_PROCESS, trials=1_000, reuse="inProcess")],
    )
    growth = row(
        f"trials {many - 500:,}–{many:,} against trials 1,000–1,500",
        "≤ 1.15 ×",
        f"{late / early:.2f} × ({late:.2f} against {early:.2f} ms of CPU)",
        late <= 1.15 * early,
        f"the least of {ROUNDS} runs each",
    )
    return [
        in_process,
        started("forked trial", (FORKED, "2.5 ms"), floors.FORKED, 600, reuse="forked",
                preload=["numpy"]),
        started("fresh trial", (FRESH, "4 ms"), floors.FRESH, 120, reuse="none"),
        each_metric(early, share),
        growth,
    ]  # fmt: skip


def started(which: str, target: tuple[float, str], one: Round, trials: int, **options: Any) -> Row:
    """The row of trials that have processes of their own."""
    first = trials // 6
    results, floor = beside(one, trials, trials=trials, marks=[first, trials], **options)
    detail = [parts(results, first, trials), counted(one, trials=trials, **options)]
    return times_floor(which, target, (least(results, first, trials), floor), detail)


def each_metric(without_ms: float, share: int) -> Row:
    """What a trial of a hundred metrics costs beyond one without, for each of them."""
    options = {"reuse": "inProcess", "function": "empty:train_with_metrics"}
    crowded, plain = floors.with_metrics(floors.METRICS), floors.with_metrics(0)
    with_them, bare = beside(crowded, 200 // share, trials=600, marks=[100, 600], **options)
    alone = min(floors.cpu_ms(plain, 600 // share)["cpu"] for _ in range(ROUNDS))
    ours = (least(with_them, 100, 600) - without_ms) / TRIALS_METRICS * MS
    floor = (bare["cpu"] - alone) / floors.METRICS * MS
    return row(
        f"{WHAT}, each further metric",
        f"≤ {METRIC:g} × floor",
        f"{ours / floor:.1f} × ({ours:.1f} against {floor:.1f} µs)",
        ours <= METRIC * floor,
        "aim: ≤ 30 µs",
    )


def beside(
    one: Round, floor_trials: int, **options: Any
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Runs of an experiment, and the least of the floors measured in turns with them."""
    results, bare = [], []
    for _ in range(ROUNDS):
        bare.append(floors.cpu_ms(one, floor_trials))
        results.append(experiment(**options))
    return results, min(bare, key=lambda floor: floor["cpu"])


def times_floor(
    which: str, target: tuple[float, str], cpu: tuple[float, dict[str, float]], detail: list[str]
) -> Row:
    """A row that divides by a floor; the absolute figure that is aimed at is in its detail."""
    (times, aim), (ms, floor) = target, cpu
    ratio = ms / floor["cpu"]
    theirs = ", ".join(f"{who} {floor[who]:.2f}" for who in PARTS)
    return row(
        f"{WHAT}, {which}",
        f"≤ {times:g} × floor",
        f"{ratio:.2f} × ({ms:.2f} against {floor['cpu']:.2f} ms)",
        ratio <= times,
        f"aim: ≤ {aim}; the least of {ROUNDS} runs each; {detail[0]} (floor: {theirs}) ms; "
        f"{detail[1]}",
    )


def parts(results: list[dict[str, Any]], start: int, end: int) -> str:
    """Who has how much of it."""
    return ", ".join(f"{who} {least(results, start, end, who):.2f}" for who in PARTS)


def least(results: list[dict[str, Any]], start: int, end: int, who: str = "cpu") -> float:
    """The least CPU a trial among the runs, in milliseconds."""
    return min(cpu_ms(result, start, end, who) for result in results)


def cpu_ms(result: dict[str, Any], start: int, end: int, who: str = "cpu") -> float:
    """Milliseconds of CPU a trial between two marks."""
    samples = result["samples"]
    trials = samples[end]["over"] - samples[start]["over"]
    return float((samples[end][who] - samples[start][who]) / trials * MS)


def counted(one: Round, *, trials: int, **options: Any) -> str:
    """What a trial of the product takes of what the floor is made of, in a run of its own."""
    first = trials // 6
    each = counts(experiment(trials=trials, marks=[first, trials], count=True, **options), first)
    floor = one.each()
    told = ", ".join(f"{each[name]:.1f} {name} (floor: {floor[name]:.1f})" for name in floor)
    return f"a trial has {told}"


def counts(result: dict[str, Any], start: int) -> dict[str, float]:
    """Commits, rows and frames a trial after a mark, by the names of :meth:`Round.each`."""
    samples = result["samples"]
    first, last = samples[start], samples[max(samples)]
    trials = last["over"] - first["over"]

    def total(*beginnings: str) -> float:
        of_these = [name for name in last["counts"] if name.startswith(beginnings)]
        grown = sum(last["counts"][name] - first["counts"].get(name, 0) for name in of_these)
        return float(grown / trials)

    journal = total("insert journal")
    return {
        "commits": total("durable commits", "other commits"),
        "journal rows": journal,
        "other rows": total("insert ", "update ") - journal,
        "frames out": total("frames to"),
        "frames in": total("frames from"),
    }
