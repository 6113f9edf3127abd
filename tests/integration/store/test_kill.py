"""What append returned is there after kill -9, and a batch is whole or not there."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dispatcher.store import SqliteJournal

WRITER = """
import sys
from pathlib import Path
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.ports import JournalEntry
from dispatcher.store import Leadership, SqliteJournal

path, size = Path(sys.argv[1]), int(sys.argv[2])
lead = Leadership.acquire(path.parent)
journal = SqliteJournal.open(path)
batch = 0
while True:
    batch += 1
    entries = [
        entry
        for seq in range(size)
        for entry in (
            JournalEntry(float(batch), e.Proposed(TrialId(batch), str(seq))),
            JournalEntry(float(batch), e.MetricReported(TrialId(batch), 1, seq, "1")),
        )
    ]
    last = journal.append(entries, [], durable=batch % 3 > 0)
    sys.stdout.write(f"{batch} {last}\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("size, after", [(1, 40), (3, 150), (200, 7), (2000, 2)])
def test_what_append_returned_survives_kill(tmp_path: Path, size: int, after: int) -> None:
    path = tmp_path / "journal.sqlite"
    for _round in range(2):  # the second life goes on where the first was cut
        path.unlink(missing_ok=True)
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(size)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        told = [next(writer.stdout) for _ in range(after)]
        writer.send_signal(signal.SIGKILL)
        told += writer.stdout.read().splitlines(keepends=True)
        writer.stdout.close()
        writer.wait()
        # The last line may be cut; all whole ones were said after append had returned.
        batch, last = map(int, [t for t in told if t.endswith("\n")][-1].split())

        journal = SqliteJournal.open(path)
        numbers = [row.number for row in journal.rows()]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= last
        assert len(numbers) % size == 0, "a batch was torn"
        metrics = journal.raw.execute("SELECT trial, count(*) FROM metrics GROUP BY 1").fetchall()
        assert len(metrics) >= batch
        assert all(count == size for _, count in metrics)
        assert len(metrics) * size == len(numbers)
        assert journal.raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        journal.close()


def test_readers_see_whole_batches_while_the_writer_writes(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    size = 50
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(size)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    next(writer.stdout)
    seen: list[list[int]] = [[], []]

    def read(counts: list[int]) -> None:
        reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        for _ in range(100):
            rows, metrics = reader.execute(
                "SELECT (SELECT count(*) FROM journal), (SELECT count(*) FROM metrics)"
            ).fetchone()
            assert rows == metrics
            counts.append(rows)
        reader.close()

    readers = [threading.Thread(target=read, args=(counts,)) for counts in seen]
    for thread in readers:
        thread.start()
    drain = threading.Thread(target=writer.stdout.read)
    drain.start()
    for thread in readers:
        thread.join()
    writer.kill()
    drain.join()
    writer.stdout.close()
    writer.wait()
    for counts in seen:
        assert len(counts) == 100, "a reader failed"
        assert counts == sorted(counts)
        assert all(count % size == 0 for count in counts)
