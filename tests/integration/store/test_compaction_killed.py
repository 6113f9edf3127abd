"""Whoever dies in the midst of a compaction leaves a store that reads the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dispatcher.core.events import AttemptStarted
from dispatcher.core.ids import TrialId
from dispatcher.store import SqliteJournal
from dispatcher.store.compaction import Compaction
from dispatcher.store.replay.folding import read_whole_past
from dispatcher.store.verify import verify
from tests.support.replaying import differences
from tests.unit.store.life import Life

COMPACT = """
import sys
from pathlib import Path
from dispatcher.store.replay.folding import compact
from dispatcher.store import SqliteJournal, compaction

compaction.SLICE_ROWS, compaction.SLICE_TRIALS = 9, 4
compact(SqliteJournal.open(Path(sys.argv[1])))
"""

PLACES = (
    "compact.base.written@1",
    "compact.base.committed@1",
    "compact.slice.written@1",  # a digest
    "compact.slice.committed@1",
    "compact.slice.written@5",  # rows
    "compact.slice.committed@5",
)


@pytest.mark.parametrize("place", PLACES)
def test_a_kill_between_any_two_steps(tmp_path: Path, place: str) -> None:
    path = tmp_path / "journal.sqlite"
    journal = SqliteJournal.open(path)
    life = Life(journal)
    life.begin()
    for trial in range(12):
        life.whole(trial)
    life.propose(12)
    life.say(AttemptStarted(TrialId(12), 1, 7))
    calls = read_whole_past(journal, Compaction(journal)).calls
    journal.close()

    environment = {**os.environ, "BEQUEATH_FAILPOINTS": f"{place}=kill"}
    command = [sys.executable, "-c", COMPACT, str(path)]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL

    journal = SqliteJournal.open(path)
    past = read_whole_past(journal, Compaction(journal))
    assert differences(life.state, past.state) == []
    assert past.row == journal.last
    assert past.calls == calls
    journal.close()
    found = verify(path)
    assert found.ok, (found.damage, found.broken_at, [str(d) for d in found.differences])

    subprocess.run(command, check=True)
    journal = SqliteJournal.open(path)
    past = read_whole_past(journal, Compaction(journal))
    assert differences(life.state, past.state) == []
    assert past.calls == calls
    assert journal.query("SELECT count(*) FROM journal")[0][0] == 2
    journal.close()
    assert verify(path).ok
