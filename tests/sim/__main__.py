"""More seeds: ``python -m tests.sim --seeds 10000 --first 0``; one and its story: ``--seed 17``.

Uses all processors, says how far it is, tells each failure in its shortest form and by the
number with which it comes again. With ``--progress FILE`` it keeps what was done, goes on there
when it is started again, and may be interrupted at any time. Exits 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from pathlib import Path

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
    parser.add_argument("--progress", type=Path, help="go on from there, and keep it up to date")
    asked = parser.parse_args()
    _quiet()
    if asked.seed is not None:
        return _tell(judge(case_of(asked.seed)))
    seeds = range(asked.first, asked.first + asked.seeds)
    return _many(seeds, asked.jobs, asked.seconds, Progress(asked.progress, seeds))


def _quiet() -> None:
    logging.getLogger("bequeath").setLevel(logging.CRITICAL)  # accidents are the rule here


def _judge_block(seeds: range) -> list[Judgement]:
    return [judgement for seed in seeds if (judgement := judge(case_of(seed))).found]


def _many(seeds: range, jobs: int, seconds: float, progress: Progress) -> int:
    started = time.monotonic()
    left = [x for x in _blocks(seeds) if x.start not in progress.done]
    if progress.done:
        print(f"{seeds}: {progress.seeds} are done, {len(progress.wrong)} of them wrong")
    done = 0
    with ProcessPoolExecutor(jobs, initializer=_quiet) as pool:
        pending = iter(left)
        # A few at a time, so that a limit of time is kept.
        running = [(b, pool.submit(_judge_block, b)) for b in (_take(pending, 2 * jobs))]
        try:
            while running:
                block, future = running.pop(0)
                found = future.result()
                progress.add(block, [judgement.case.seed for judgement in found])
                done += len(block)
                for judgement in found:
                    print(f"seed {judgement.case.seed}: {judgement.found[0]}", flush=True)
                if time.monotonic() - started < seconds:
                    running += [(b, pool.submit(_judge_block, b)) for b in _take(pending, 1)]
                if done % 500 == 0:
                    _tell_how_far(progress, len(seeds), done / (time.monotonic() - started))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print("interrupted")
    rate = done / max(time.monotonic() - started, 1e-9)
    _tell_how_far(progress, len(seeds), rate)
    for seed in progress.wrong[:TOLD_IN_FULL]:
        judgement = judge(case_of(seed))
        if judgement.found:  # else it is mended since
            print(f"\n== seed {seed}, made as short as could be")
            _tell(shrink(judgement))
            print(f"the whole story: make simulate SEED={seed}")
    return 1 if progress.wrong else 0


def _blocks(seeds: range) -> list[range]:
    return [seeds[at : at + BLOCK] for at in range(0, len(seeds), BLOCK)]


def _tell_how_far(progress: Progress, seeds: int, rate: float) -> None:
    print(
        f"{progress.seeds} of {seeds} seeds, {rate:.1f}/s, {len(progress.wrong)} wrong", flush=True
    )


class Progress:
    """Which blocks of seeds are done, and which seeds went wrong; in a file, if there is one. It
    belongs to one range of seeds: another one begins anew."""

    def __init__(self, path: Path | None, seeds: range) -> None:
        self._path = path
        self._range = [seeds.start, seeds.stop]
        self.done: set[int] = set()  # first seeds of blocks
        self.seeds = 0
        self.wrong: list[int] = []
        if path is None or not path.exists():
            return
        kept = json.loads(path.read_text())
        if kept["range"] == self._range and kept["block"] == BLOCK:
            self.done, self.wrong = set(kept["done"]), kept["wrong"]
            self.seeds = sum(len(block) for block in _blocks(seeds) if block.start in self.done)

    def add(self, block: range, wrong: list[int]) -> None:
        """A block is done."""
        self.done.add(block.start)
        self.seeds += len(block)
        self.wrong.extend(wrong)
        if self._path is None:
            return
        kept = {
            "range": self._range,
            "block": BLOCK,
            "done": sorted(self.done),
            "wrong": sorted(self.wrong),
        }
        draft = self._path.with_suffix(".new")
        draft.write_text(json.dumps(kept))
        draft.replace(self._path)


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
