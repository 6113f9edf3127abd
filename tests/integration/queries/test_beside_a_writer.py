"""Questions are answered while a head writes, and after it was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from dispatcher.queries import (
    ExperimentReader,
    ExperimentStatus,
    TrialFilter,
    experiment_summary,
    lineage,
    list_trials,
    trial,
)
from tests.unit.queries.evolution import make_folder

HEAD = """
import sys
from pathlib import Path
from dispatcher.store import Leadership
from tests.unit.queries.evolution import evolve

folder = Path(sys.argv[1])
lead = Leadership.acquire(folder)
print("leads", flush=True)
evolve(folder, 100_000)
"""


def test_answers_beside_a_writer_and_after_its_death(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    head = subprocess.Popen(
        [sys.executable, "-c", HEAD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert head.stdout is not None
        assert head.stdout.readline() == "leads\n"
        while not (folder / "journal.sqlite").exists() or not _trials(folder):
            assert head.poll() is None
        seen = 0
        while seen < 60:
            assert head.poll() is None
            with ExperimentReader.open(folder) as reader:
                with reader.moment():
                    ended = list_trials(reader, TrialFilter(live=False))
                    tree = lineage(reader)
                # One moment: what one answer holds, the other holds as well.
                assert {t.id for t in ended if t.outcome != "no trial"} <= set(tree.nodes)
                found = experiment_summary(reader)
                assert found.status is ExperimentStatus.RUNNING
                assert found.pid == head.pid
            assert len(ended) >= seen
            seen = len(ended)
    finally:
        head.send_signal(signal.SIGKILL)
        head.wait()
        head.stdout.close()
    with ExperimentReader.open(folder) as reader:
        found = experiment_summary(reader)
        assert found.status is ExperimentStatus.INTERRUPTED
        assert found.pid is None
        assert found.ended >= seen - 1
        assert trial(reader, 3).metrics


def _trials(folder: Path) -> int:
    from dispatcher.errors import DispatcherError

    try:
        with ExperimentReader.open(folder) as reader:
            return len(list_trials(reader))
    except DispatcherError:
        return 0  # between the file's birth and its first table
