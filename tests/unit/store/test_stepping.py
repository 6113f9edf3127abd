"""A journal that is applied again row by row shows what led a trial to where it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.json_shapes import SHAPES
from dispatcher.cli.main import app
from dispatcher.core import events as e
from dispatcher.core.arrows import name_of
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.errors import InvalidTransition, UserError
from dispatcher.store import SqliteJournal
from dispatcher.store.replay.describing import event_text, trial_text
from dispatcher.store.replay.folding import compact
from dispatcher.store.replay.history import read_past
from dispatcher.store.replay.stepping import SteppedPast, step_through
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import HOST, Life

T = TrialId


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path)


@pytest.fixture
def journal(folder: Path) -> Iterator[SqliteJournal]:
    """Trial 0 is done; trial 1 waits for it, fails once, and runs again; trial 2 is asked for."""
    opened = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(opened, slots=2, trial_retries=1)
    life.say(e.WorkerJoined(HOST, 2), e.TunerHostReady())
    life.propose(0)
    life.say(e.WaitStarted(T(1), 1, (T(0),)))
    life.run(0)
    life.deliver(0)
    life.propose(1, parent=0, parameters=json.dumps({"text": "x" * 500}))
    life.say(e.AttemptStarted(T(1), 1, 7))
    life.exit(1, 1, EndReason.FAILED, text="hunter2")
    life.now += 1000
    life.say(e.Tick(), e.AttemptStarted(T(1), 2, 8), e.AttemptEnded(T(1), 1, EndReason.LOST))
    yield opened
    opened.close()


def moves(stepped: SteppedPast) -> dict[str, str]:
    """By the kind of an event, the states that the trial went through."""
    return {
        type(row.event).__name__: " ".join(
            ["new" if row.moves[0].before is None else row.moves[0].before.name]
            + [f"-{name_of(move.trigger)}> {move.after.name}" for move in row.moves]
        )
        for row in stepped.rows
        if row.moves
    }


def test_a_trials_way_is_shown_with_what_moved_it(journal: SqliteJournal) -> None:
    stepped = step_through(journal, trial=T(1))
    kinds = [type(row.event).__name__ for row in stepped.rows]
    assert kinds == [
        "TunerHostReady",
        "WaitStarted",
        "EndDelivered",
        "Proposed",
        "AttemptStarted",
        "AttemptEnded",
        "Tick",
        "AttemptStarted",
        "AttemptEnded",
    ]
    assert [kind for row, kind in zip(stepped.rows, kinds, strict=True) if not row.counted] == [
        "AttemptEnded"  # of an attempt that is not believed any more
    ]
    assert moves(stepped) == {
        "TunerHostReady": "new -asked> OPEN",
        "WaitStarted": "OPEN -WaitStarted> BLOCKED",
        "EndDelivered": "BLOCKED -gate opened> OPEN",
        "Proposed": "OPEN -Proposed> QUEUED -placed> RUNNING",
        "AttemptEnded": "RUNNING -AttemptEnded> BACKOFF",
        "Tick": "BACKOFF -back-off over> QUEUED -placed> RUNNING",
    }
    assert stepped.state is not None
    assert trial_text(stepped.state, T(1)) == (
        "RUNNING for 1.0 s, attempt 2 (running) on local, failures 1; no result, gate closed"
    )
    assert trial_text(stepped.state, T(0)).endswith("; succeeded, delivered, gate open")


def test_a_replay_ends_where_it_is_to_end(journal: SqliteJournal) -> None:
    whole = step_through(journal, trial=T(1))
    wait = next(row for row in whole.rows if isinstance(row.event, e.WaitStarted))
    stepped = step_through(journal, until=wait.number, trial=T(1))
    assert (stepped.first, stepped.until, stepped.newest) == (1, wait.number, journal.last)
    assert stepped.state is not None
    assert stepped.state.trials[T(1)].state.name == "BLOCKED"
    assert sum(stepped.kinds.values()) == wait.number
    assert step_through(journal, until=journal.last + 9).until == journal.last


def test_what_comes_then_is_applied_at_last(journal: SqliteJournal) -> None:
    end = e.AttemptEnded(T(1), 2, EndReason.FINISHED)
    stepped = step_through(
        journal, trial=T(1), then=[(9000.0, end), (9001.0, e.EndDelivered(T(9)))]
    )
    assert (stepped.rows[-1].number, stepped.rows[-1].event) == (None, end)
    assert stepped.refused == "the event is refused: EndDelivered names trial 9, which is not"


def test_rows_that_were_folded_cannot_be_shown(journal: SqliteJournal) -> None:
    whole = step_through(journal, trial=T(1))
    assert compact(journal)
    with pytest.raises(UserError, match=f"rows up to {journal.last} were folded into one state"):
        step_through(journal, until=3)
    stepped = step_through(journal, trial=T(1))
    assert (stepped.first, stepped.rows) == (journal.last + 1, [])
    assert stepped.state is not None
    assert whole.state is not None
    assert stepped.state.trials == whole.state.trials


def test_a_row_that_is_refused_ends_the_replay(journal: SqliteJournal, folder: Path) -> None:
    """As one that another version has written."""
    journal.raw.execute("UPDATE journal SET kind = 'EndDelivered', crc = NULL WHERE n = 8")
    stepped = step_through(journal)
    assert stepped.until == 7
    assert stepped.refused.startswith("row 8 is refused: ")
    with pytest.raises(InvalidTransition) as caught:
        read_past(journal)
    assert caught.value.hint.endswith(f"replay {folder} --until 8 --trial 0")
    assert caught.value.where == "row 8 of the journal"
    ran = CliRunner().invoke(app, ["experiment", "replay", str(folder)])
    assert ran.exit_code == 1
    assert "row 8 is refused: " in ran.output
    assert "Traceback" not in ran.output


def shown(folder: Path, *words: str) -> Any:
    ran = CliRunner().invoke(app, ["experiment", "replay", str(folder), *words])
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.output) if "--json" in words else ran.output


def test_the_command_shows_a_trials_way(journal: SqliteJournal, folder: Path) -> None:
    text = shown(folder, "--trial", "1")
    first, *_, last = text.splitlines()
    assert first == f"{folder.name}: rows 1 to {journal.last} of {journal.last}, of trial 1"
    assert last.startswith(f"after row {journal.last}: RUNNING for ")
    assert "WaitStarted ticket=1 parents=[0]" in text
    assert "OPEN → BLOCKED\n" in text
    assert "BACKOFF → QUEUED (back-off over) → RUNNING (placed)\n" in text
    assert "(without effect)" in text
    assert "x" * 100 not in text, "long values are cut"


def test_the_command_counts_events_without_a_trial(journal: SqliteJournal, folder: Path) -> None:
    text = shown(folder, "--until", "9")
    assert "rows 1 to 9" in text
    assert "WaitStarted            1" in text
    document = shown(folder, "--json")
    assert document["state"]["phase"] == "running"
    assert document["state"]["trials"]["RUNNING"] == 1
    assert document["kinds"]["AttemptEnded"] == 3
    assert document["events"] == []


def test_the_documents_keys_are_as_documented(journal: SqliteJournal, folder: Path) -> None:
    document = shown(folder, "--trial", "1", "--json")
    promised = SHAPES["experiment replay"]
    assert list(document) == promised[2 : promised.index("}")].split(", ")
    assert list(document["events"][0]) == ["row", "at", "kind", "fields", "counted", "moves"]
    first, last = document["events"][0]["moves"], document["events"][6]["moves"]
    assert first == [{"from": None, "to": "OPEN", "by": "asked"}]
    assert last[0] == {"from": "BACKOFF", "to": "QUEUED", "by": "back-off over"}
    assert document["state"]["attempt"] == 2
    assert document["state"]["state"] == "RUNNING"


def test_an_event_is_a_line() -> None:
    event = e.AttemptEnded(T(1), 1, EndReason.LOST, text="one\n two" + "x" * 90)
    line = event_text(event, T(1))
    assert line.startswith("AttemptEnded attempt=1 reason=lost text=one two")
    assert line.endswith("…")
    assert event_text(e.Tick(), T(1)) == "Tick"
    assert event_text(e.EndDelivered(T(0)), T(1)) == "EndDelivered trial=0"


def test_a_trial_that_the_whole_journal_does_not_know_is_refused(
    journal: SqliteJournal, folder: Path
) -> None:
    command = ["experiment", "replay", str(folder), "--trial"]
    ran = CliRunner().invoke(app, [*command, "99"])
    assert ran.exit_code == ExitCode.USER
    assert "there is no trial 99" in ran.output
    early = CliRunner().invoke(app, [*command, "1", "--until", "1"])
    assert early.exit_code == 0, "trial 1 came later"
