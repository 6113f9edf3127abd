"""More seeds: ``python -m tests.sim --seeds 10000 --first 0``; one and its story: ``--seed 17``.

Uses all processors, says how far it is, tells each failure in its shortest form and by the
number with which it comes again. Exits 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields

from tests.sim.judging import Judgement, judge
from tests.sim.shrinking import shrink
from tests.support.odds import Case, Odds, case_of

BLOCK = 50
TOLD_IN_FULL = 5


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="only this one, with its story")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    asked = parser.parse_args()
    _quiet()
    if asked.seed is not None:
        return _tell(judge(case_of(asked.seed)))
    return _many(range(asked.first, asked.first + asked.seeds), asked.jobs, asked.seconds)


def _quiet() -> None:
    logging.getLogger("bequeath").setLevel(logging.CRITICAL)  # accidents are the rule here


def _judge_block(seeds: range) -> list[Judgement]:
    return [judgement for seed in seeds if (judgement := judge(case_of(seed))).found]


def _many(seeds: range, jobs: int, seconds: float) -> int:
    started = time.monotonic()
    blocks = [seeds[at : at + BLOCK] for at in range(0, len(seeds), BLOCK)]
    done, wrong = 0, []
    with ProcessPoolExecutor(jobs, initializer=_quiet) as pool:
        pending = iter(blocks)
        # A few at a time, so that a limit of time is kept.
        running = [(b, pool.submit(_judge_block, b)) for b in (_take(pending, 2 * jobs))]
        while running:
            block, future = running.pop(0)
            found = future.result()
            wrong.extend(found)
            done += len(block)
            for judgement in found:
                print(f"seed {judgement.case.seed}: {judgement.found[0]}", flush=True)
            if time.monotonic() - started < seconds:
                running += [(b, pool.submit(_judge_block, b)) for b in _take(pending, 1)]
            if done % 500 == 0:
                rate = done / (time.monotonic() - started)
                print(f"{done} of {len(seeds)} seeds, {rate:.0f}/s, {len(wrong)} wrong", flush=True)
    print(f"{done} seeds from {seeds.start} on, {len(wrong)} wrong")
    for judgement in wrong[:TOLD_IN_FULL]:
        print(f"\n== seed {judgement.case.seed}, made as short as could be")
        _tell(shrink(judgement))
        print(f"the whole story: make simulate SEED={judgement.case.seed}")
    return 1 if wrong else 0


def _take(blocks: object, count: int) -> list[range]:
    return [block for _, block in zip(range(count), blocks, strict=False)]  # type: ignore[call-overload]


def _tell(judgement: Judgement) -> int:
    print(f"seed {judgement.case.seed}; {_world(judgement.case)}\n{judgement.story}")
    print("\n".join(f"!! {sentence}" for sentence in judgement.found) or "every promise was kept")
    return 1 if judgement.found else 0


def _world(case: Case) -> str:
    """What is special about it."""
    odds = [
        f"{field.name}={value}"
        for field in fields(Odds)
        if (value := getattr(case.odds, field.name)) not in (0, 0.0, False)
    ]
    settings = case.settings
    return (
        f"{settings.slots} slots, {settings.max_trials} trials, lookahead {settings.lookahead}, "
        f"workers {case.workers}; {' '.join(odds)}"
    )


if __name__ == "__main__":
    sys.exit(main())
