"""A store that no head could take up again goes on, and says why.

``store-0.1.0-stopped-early.tar.gz`` was recorded before there was ``LastMetricKept``. An assessor
had stopped trial 1 early, and its agent was killed while the trial left. The tuner was given its
last metric (``keepResult``), and the head was killed some trials later. A replay did not find it.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import app
from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.head.head import Head
from dispatcher.notices import Notice, NoticeKind
from dispatcher.store import SqliteJournal
from dispatcher.store.verify import verify
from tests.support.checker import check_store
from tests.support.processes import end_processes_of

HERE = Path(__file__).parent
SENTENCE = "trial 1 was stopped early and lost with its agent"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The recorded experiment, at another place than it was made."""
    with tarfile.open(HERE / "store-0.1.0-stopped-early.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    (found,) = tmp_path.glob("early-*")
    shutil.copytree(HERE / "code", tmp_path / "code")
    config = found / "experiment.json"
    text = config.read_text().replace("@CODE@", str(tmp_path / "code"))
    config.write_text(text.replace("@BASE@", str(tmp_path)))
    try:
        yield found
    finally:
        end_processes_of(found)


def test_it_verifies_and_says_what_was_mended(folder: Path) -> None:
    ran = CliRunner().invoke(app, ["experiment", "verify", str(folder)])
    assert ran.exit_code == 0, ran.output
    assert SENTENCE in " ".join(ran.output.split())
    ran = CliRunner().invoke(app, ["experiment", "verify", str(folder), "--json"])
    assert SENTENCE in json.loads(ran.output)["mended"]


def test_it_is_shown_row_by_row_and_stays_as_it_is(folder: Path) -> None:
    store = folder / "journal.sqlite"
    before = store.read_bytes()
    ran = CliRunner().invoke(app, ["experiment", "replay", str(folder), "--trial", "1", "--json"])
    assert ran.exit_code == 0, ran.output
    kinds = [one["kind"] for one in json.loads(ran.output)["events"]]
    assert kinds.index("MetricReported") < kinds.index("TrialStopRequested")
    assert store.read_bytes() == before


def test_it_is_resumed_to_its_end_and_says_so_once(folder: Path) -> None:
    store = folder / "journal.sqlite"
    notices: list[Notice] = []
    assert Head(folder, on_notice=notices.append).run() is Phase.COMPLETED, notices
    assert [SENTENCE in x.text for x in notices if x.kind is NoticeKind.JOURNAL] == [True]
    assert check_store(store, over=True) == []
    verified = verify(store)
    assert verified.ok
    assert verified.mended == "", "a head has said it"
    journal = SqliteJournal.open(store)
    delivered = [x.event.trial for x in journal.rows() if isinstance(x.event, e.ResultDelivered)]
    journal.close()
    assert sorted(delivered) == list(range(6)), "each result counts once"
