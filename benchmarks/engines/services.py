"""Jobs of services over HTTP: one look at a thousand of them, and trials in a warm one.

The services are those of the tests: each judges what it is asked by its published contract, keeps
its state, and runs its jobs as processes of this machine. What a look costs is counted in the
thread that takes it; the service's own work is its business.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.engines.steps import WARM_TARGET, Step, taken
from benchmarks.engines.warm import beside_ssh
from benchmarks.rows import Row, median, row
from dispatcher.http_services import token_bucket
from dispatcher.platforms.http_jobs import allocator as pace
from tests.support.services.played import Orders, PlayedPlatform, platform_named, whole_section

JOBS, LOOKS = 1_000, 20
LOOK_TARGET = "≤ 3 requests, ≤ 50 ms of CPU"

#: The services, and of which of them trials are measured as well: the agent is the same in all.
PLATFORMS = {
    "OpenPAI": "tests.support.services.openpai:OPENPAI",
    "Vertex AI": "tests.support.services.google:VERTEX",
    "AI Platform Training": "tests.support.services.google:AI_PLATFORM",
    "Azure ML": "tests.support.services.azureml:AZUREML",
    "PAI-DLC": "tests.support.services.dlc:DLC",
    "DLTS": "tests.support.services.dlts:DLTS",
    "NSML": "tests.support.services.nsml:NSML",
}
WARM = ("OpenPAI", "Vertex AI")


def run(*, quick: bool = False) -> Iterator[Row]:
    """The rows; blocks for minutes."""
    jobs = JOBS // 10 if quick else JOBS
    for name, where in PLATFORMS.items():
        played = platform_named(where)
        steps = [Step(f"{name}, one look", LOOK_TARGET, partial(one_look, name, played, jobs))]
        if name in WARM:
            ssh = partial(warm_beside_ssh, name, played, quick)
            steps.append(Step(f"{name}, warm, against SSH", WARM_TARGET, ssh))
        yield from taken(steps)


def one_look(name: str, played: PlayedPlatform, jobs: int) -> list[Row]:
    """All jobs wait, as in a queue; each was asked for as a head does it."""
    # They are to be there soon: what bounds requests in a second is not what is measured.
    token_bucket.TokenBucket.take = lambda _self: None  # type: ignore[method-assign]
    pace.WHY_EVERY_S = 3600.0  # a question of its own, about one job
    with (
        tempfile.TemporaryDirectory(prefix="look-") as made,
        played.serving(Path(made), 0) as service,
    ):
        orders = Orders(whole_section(played, service, Path(made)), Path(made))
        allocator = orders.allocator()
        try:
            for number in range(jobs):
                allocator.submit(orders.order(number + 1))
            allocator.look()
            cpu_s, before = [], len(service.asked)
            for _ in range(LOOKS):
                began = time.thread_time()
                seen = len(list(allocator.look()))
                cpu_s.append(time.thread_time() - began)
                assert seen == jobs, f"{seen} of {jobs}"
            requests = (len(service.asked) - before) / LOOKS
        finally:
            allocator.close()
    milliseconds = 1000 * median(cpu_s)
    return [
        row(
            f"one look at {jobs:,} jobs of {name}",
            LOOK_TARGET,
            f"{requests:.1f} requests, {milliseconds:.1f} ms of CPU",
            requests <= 3 and milliseconds <= 50,
            f"the median of {LOOKS} looks; a service of the tests, judged by the contract",
        )
    ]


def warm_beside_ssh(name: str, played: PlayedPlatform, quick: bool) -> list[Row]:
    """See :func:`benchmarks.engines.warm.beside_ssh`."""
    with (
        tempfile.TemporaryDirectory(prefix="warm-") as made,
        played.serving(Path(made), 2) as service,
    ):
        folder = Path(made)
        keys = {"mounts": {"/": "/"}, "allocations": 1, "reuseMode": "inProcess"}
        where = whole_section(played, service, folder, bringCode=True, **keys)
        return beside_ssh(f"job of {name}", where, folder, quick, base=folder)
