"""NePS: two workers that run trials in their own process and meet in a shared folder.

Counted: calls of the empty ``evaluate_pipeline`` in both workers together, from when both had
started and the warm-up was over to the last one. NePS is imported once, before the workers
are forked, so neither its import nor torch's is in the figure. The cost of a trial grows
with the number of trials in the folder; few trials are therefore in NePS' favour.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import sys
import time
from importlib.metadata import version
from multiprocessing.synchronize import Barrier
from pathlib import Path

from steady import say, steady

WORKERS = 2


def work(folder: Path, trials: int, number: int, both: Barrier) -> None:
    """One worker: its share of the trials, and when each was evaluated."""
    import neps

    class Space(neps.PipelineSpace):  # type: ignore[misc]
        x = neps.Float(0.0, 1.0)

    ends: list[float] = []

    def evaluate(x: float) -> float:
        ends.append(time.monotonic())
        return 1.0

    both.wait(60)
    neps.run(
        evaluate_pipeline=evaluate,
        pipeline_space=Space(),
        root_directory=folder / "shared",
        optimizer="random_search",
        worker_id=str(number),
        worker_evaluations_to_spend=trials // WORKERS,
    )
    (folder / f"ends{number}.json").write_text(json.dumps(ends))


def main() -> None:
    """``neps_folder.py TRIALS``."""
    logging.disable(logging.WARNING)
    os.environ["MPLCONFIGDIR"] = f"{sys.prefix}/matplotlib"  # its font cache, made once
    import neps  # noqa: F401 - in the parent, so that the workers need not

    trials, folder = int(sys.argv[1]), Path.cwd()
    forked = multiprocessing.get_context("fork")
    both = forked.Barrier(WORKERS)
    workers = [
        forked.Process(target=work, args=(folder, trials, number, both))
        for number in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    ends = [json.loads(path.read_text()) for path in folder.glob("ends*.json")]
    if len(ends) != WORKERS:
        raise SystemExit("a NePS worker failed; its words are above")
    # A worker that is left alone at the end no longer stands for two.
    until = min(each[-1] for each in ends)
    result = steady(
        "NePS in a shared folder",
        "neural-pipeline-search",
        [end for each in ends for end in each if end <= until],
        workers=WORKERS,
    )
    detail = f"random search, {trials} trials, torch {version('torch')}"
    say({**result, "detail": detail})


if __name__ == "__main__":
    main()
