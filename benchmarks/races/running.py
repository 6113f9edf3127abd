"""Start a program of a race, and time it until it says that it has arrived."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import peer_runs
from benchmarks.environments import EnvironmentFailed, python_of
from benchmarks.plain_digits import FILE, write_digits
from benchmarks.races import clock

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LOOK_S = 0.02

#: For all alike: one core a worker, and no daemon that counts users.
ALIKE = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": f"{ROOT}:{peer_runs.SCRIPTS}",
}


@dataclass(frozen=True)
class Racer:
    """A system in a race: its name, the environment that it runs in, and its program."""

    name: str
    environment: str
    program: str


@dataclass(frozen=True)
class Finish:
    """How a racer came out with one seed.

    Attributes:
        wall_s: from the start of its process until it knew of a good result; the budget if it
            did not within that.
        own_s: the same from the start of its first trial.
        arrived: whether it did.
    """

    wall_s: float
    own_s: float
    arrived: bool


def race(
    racers: Sequence[Racer], seeds: Sequence[int], budget_s: float
) -> dict[str, list[Finish] | str]:
    """Each racer's finishes, seed by seed; of one that failed the reason, in words.

    All run one after another, with one seed each, in an order that turns from seed to seed. Before
    the first seed each runs once for up to a quarter of the budget, so that files are cached.

    Args:
        racers: the systems.
        seeds: one race each.
        budget_s: seconds on the clock, of each racer and seed.
    """
    found: dict[str, list[Finish] | str] = {one.name: [] for one in racers}
    with tempfile.TemporaryDirectory(prefix="bq-race-", dir="/tmp") as folder:
        digits = Path(folder) / "digits.npz"
        write_digits(digits)
        for turn, seed in enumerate([seeds[0] + 1000, *seeds]):
            at = turn % len(racers)
            for one in [*racers[at:], *racers[:at]]:
                finishes = found[one.name]
                if isinstance(finishes, str):
                    continue
                try:
                    finish = run(one, seed, budget_s if turn else budget_s / 4, digits)
                except (peer_runs.PeerFailed, OSError) as error:
                    found[one.name] = str(error)
                    continue
                if turn:
                    finishes.append(finish)
    return found


def run(racer: Racer, seed: int, budget_s: float, digits: Path) -> Finish:
    """One run of a racer. Nothing of it goes on afterwards.

    Raises:
        PeerFailed: its environment could not be made, or it ended before it arrived.
    """
    try:
        python = python_of(racer.environment)
    except (EnvironmentFailed, OSError, subprocess.CalledProcessError) as error:
        raise peer_runs.PeerFailed(f"its environment could not be made: {error}") from None
    # Below /tmp itself: Ray makes Unix sockets in it, whose paths may have 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="bq-race-", dir="/tmp"))
    scratch = folder / "scratch"
    scratch.mkdir()
    surroundings = {
        **peer_runs.environment_in(scratch),
        **ALIKE,
        FILE: str(digits),
        clock.FOLDER: str(folder),
        clock.SEED: str(seed),
        "BEQUEATH_HOME": str(scratch),
    }
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        began, began_at = time.perf_counter(), time.time()
        program = subprocess.Popen(
            [str(python), str(HERE / racer.program)],
            cwd=scratch,
            env=surroundings,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            arrived = _arrives(program, folder / "out", began + budget_s)
            wall = time.perf_counter() - began if arrived else budget_s
            if not arrived and program.poll() is not None:
                raise peer_runs.PeerFailed(_last_words(program.returncode, folder / "err"))
            note = folder / clock.BEGAN
            before = float(note.read_text()) - began_at if note.exists() else 0.0
            return Finish(wall, wall - before, arrived)
        finally:
            peer_runs.end_all(str(scratch))
            program.wait()
            shutil.rmtree(folder, ignore_errors=True)


def _arrives(program: subprocess.Popen[bytes], out: Path, deadline: float) -> bool:
    while time.perf_counter() < deadline:
        over = program.poll() is not None  # before the look: its last words are in it
        if any(line.startswith(clock.ARRIVED) for line in out.read_text().splitlines()):
            return True
        if over:
            return False
        time.sleep(LOOK_S)
    return False


def _last_words(code: int, err: Path) -> str:
    words = (err.read_text().strip().splitlines() or ["nothing on stderr"])[-1]
    return f"it ended with exit code {code} before it arrived: {words[: peer_runs.REASON_CHARS]}"
