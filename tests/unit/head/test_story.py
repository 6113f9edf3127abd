"""An event that is refused tells its story; the command that it names shows the refusal again."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dispatcher.channel import PeerMessage
from dispatcher.cli.main import app
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, TrialState
from dispatcher.engine import Engine, OwnedFact, ReceivedMessage
from dispatcher.errors import BrokenInvariant, InvalidTransition
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head.notice_board import EngineWatcher, NoticeBoard
from dispatcher.head.story import RefusalStory
from dispatcher.notices import Notice, NoticeKind
from dispatcher.ports import Frame, JournalEntry, RefusedEvent
from dispatcher.store import SqliteJournal
from dispatcher.store.replay.refused import REPORTS_KEPT, read_report, write_report
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import Life
from trial_runtime.masking import Mask

T0, T1 = TrialId(0), TrialId(1)
NOBODY: Any = type("Nobody", (), {"perform": lambda *_: None, "flush": lambda *_: None})()


class Led:
    """An experiment of two trials that one engine leads: trial 0 runs its first attempt."""

    def __init__(self, base: Path, debug: bool = False) -> None:
        self.folder = ExperimentFolder(make_folder(base))
        self.journal = SqliteJournal.open(self.folder.journal)
        life = Life(self.journal)
        life.begin()
        life.propose(0)
        row = life.say(e.AttemptStarted(T0, 1, 7))
        self.row, self.state, self.notices = row, life.state, list[Notice]()
        mask = Mask(["hunter2"])
        log: Any = type("Log", (), {"info": lambda *_, **__: None})()
        board = NoticeBoard(self.notices.append, mask, log)
        self.read_out = board.read_out_the_rest
        unused: Any = None
        self.watcher = EngineWatcher(
            board, unused, self.folder.reports, RefusalStory(self.folder, mask)
        )
        self.engine = Engine(
            self.state,
            self.journal,
            unused,
            NOBODY,
            {"local": NOBODY},
            unused,
            self.watcher,
            row=row,
            debug=debug,
            clock=lambda: life.now + 2,
        )

    def turn(self, *facts: OwnedFact) -> None:
        self.engine.turn(list(facts), last=False)

    def reports(self) -> list[Path]:
        return sorted(self.folder.reports.glob("refused-*.json"))


@pytest.fixture
def led(tmp_path: Path) -> Iterator[Led]:
    made = Led(tmp_path)
    yield made
    made.journal.close()


def command_of(text: str) -> list[str]:
    """The command that a story ends with."""
    found = re.search(r"^  bequeath (experiment replay .*)$", text, re.MULTILINE)
    assert found, text
    return shlex.split(found[1])


def test_an_event_of_our_own_that_is_refused_is_refused_again_by_the_command_it_names(
    led: Led,
) -> None:
    batch = (e.AttemptEnded(T0, 1, EndReason.FAILED, text="hunter2 is wrong"), e.Proposed(T1, "{}"))
    with pytest.raises(InvalidTransition) as caught:
        led.turn(*(OwnedFact("", event) for event in (*batch, e.ResultDelivered(T1))))
    story = str(caught.value)
    assert "hunter2" not in story
    head, origin, stands, last, _ = story.splitlines()
    assert head == "trial 1 cannot take ResultDelivered while RUNNING"
    assert origin == f"  from: this head; it would have been row {led.row + 3}"
    assert stands.startswith("  trial 1: RUNNING for 0.0 s, attempt 1 (starting) on local; no")
    assert last == f"  last: {led.row + 2} Proposed parameters={{}}", "what is in no row yet, too"
    assert led.journal.last == led.row, "nothing of the batch is on disk"

    (report,) = led.reports()
    assert report.name == f"refused-{led.row + 3}.json"
    assert report.stat().st_mode & 0o777 == 0o600
    assert "hunter2" not in report.read_text()
    document = json.loads(report.read_text())
    assert document["until"] == led.row
    assert [one["kind"] for one in document["batch"]] == ["AttemptEnded", "Proposed"]
    assert document["record"]["attempt"] == 1

    words = command_of(story)
    until = ["--until", str(led.row)]
    assert words[:7] == ["experiment", "replay", str(led.folder.path), *until, "--trial", "1"]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 1, ran.output
    assert "trial 1 cannot take ResultDelivered while RUNNING" in ran.output
    assert f"after row {led.row}: RUNNING" in ran.output
    ran = CliRunner().invoke(app, [*words, "--json"])
    document = json.loads(ran.output)
    assert [(one["kind"], one["row"]) for one in document["events"][-2:]] == [
        ("Proposed", None),
        ("ResultDelivered", None),
    ]
    assert "cannot take ResultDelivered" in document["refused"]


def test_a_peers_event_is_dropped_and_told_with_its_place_in_its_message(led: Led) -> None:
    late = e.ResultDelivered(T0)
    batch: list[e.Event] = [e.ImportDelivered(7), e.ImportDelivered(8), late]
    led.turn(
        OwnedFact("tuner", late, ReceivedMessage(391, batch)),
        OwnedFact("local", e.AttemptEnded(T0, 1, EndReason.FINISHED)),
    )
    led.read_out()
    (notice,) = led.notices
    assert notice.kind is NoticeKind.PEER_FAULT
    assert "tuner (1 so far): trial 0 cannot take ResultDelivered while RUNNING" in notice.text
    assert "from: the tuner host, frame 391, message 3 of 3" in notice.text
    assert f"last: {led.row} AttemptStarted attempt=1 pid=7 · " in notice.text
    assert led.state.trials[T0].state is TrialState.DELIVERING, "and the batch went on"
    ran = CliRunner().invoke(app, command_of(notice.text))
    assert ran.exit_code == 1
    assert "the event is refused: trial 0 cannot take ResultDelivered" in ran.output


def test_each_event_knows_its_message_and_its_place_there(led: Led) -> None:
    ends: list[e.Event] = [e.ResultDelivered(T0), e.EndDelivered(T0)]
    led.engine._tuner = type("Tuner", (), {"receive": lambda *_: ends})()  # type: ignore[assignment]
    led.engine._collect([PeerMessage("tuner", b"peer", b"")] * 2)
    frames = [fact.message and fact.message.frame(fact.event) for fact in led.engine._of_tuner]
    assert frames == [(1, 1, 2), (1, 2, 2), (2, 1, 2), (2, 2, 2)]


def test_a_flood_of_a_peers_events_makes_few_reports(led: Led) -> None:
    for _ in range(100):
        led.turn(OwnedFact("tuner", e.ResultDelivered(T0)))
    led.read_out()
    assert len(led.notices) == len(led.reports()) == 7, "the first, second, fourth, …"
    assert led.watcher.faults.counts == {"tuner": 100}


def test_the_newest_reports_are_kept(led: Led) -> None:
    for count in range(REPORTS_KEPT + 5):
        entry = JournalEntry(5.0, e.ResultDelivered(T0))
        error, frame = InvalidTransition("no"), Frame(count, 1, 1)
        led.watcher.refused(
            RefusedEvent(error, f"peer {count}", frame, entry, led.row, (), led.state)
        )
    assert len(led.reports()) == REPORTS_KEPT
    last = [json.loads(one.read_text())["peer"] for one in led.reports()]
    assert f"peer {REPORTS_KEPT + 4}" in last


def test_a_state_that_contradicts_itself_is_nobodys_fault_but_ours(tmp_path: Path) -> None:
    led = Led(tmp_path, debug=True)
    led.state.trials[T0].parent = T1  # which has not ended, so trial 0 may not run
    event = e.WorkerSuspect(WorkerId("local"), 9.0)
    with pytest.raises(BrokenInvariant) as caught:
        led.turn(OwnedFact("local", event, ReceivedMessage(4, [event])))
    assert "from: local, frame 4, message 1 of 1" in str(caught.value)
    assert "\n  trial 0: RUNNING for " in str(caught.value), "the event names none"
    assert led.watcher.faults.counts == {}
    assert len(led.reports()) == 1
    led.journal.close()


def test_what_cannot_be_written_or_read_hides_no_error(led: Led) -> None:
    led.folder.reports.write_text("no folder")
    led.journal.raw.execute("UPDATE journal SET kind = 'Nonsense' WHERE trial = 0")
    with pytest.raises(InvalidTransition) as caught:
        led.turn(OwnedFact("", e.ResultDelivered(T0)))
    story = str(caught.value)
    assert story.startswith("trial 0 cannot take ResultDelivered while RUNNING")
    assert "no report of it can be written" in story
    assert "its rows cannot be read: rows of trial 0 cannot be read: unknown message" in story
    assert "--then" not in story


def every_event() -> list[e.Event]:
    """One of each kind that the tests of legality know."""
    from tests.unit.core import test_legality

    kinds: dict[Any, Any] = {}
    for table in vars(test_legality).values():
        if isinstance(table, dict):
            kinds.update({k: v for k, v in table.items() if isinstance(k, type)})
    return [event for kind, event in kinds.items() if isinstance(event, kind)]


def test_events_come_out_of_a_report_as_they_went_in(led: Led) -> None:
    events = every_event()
    assert len(events) > 10
    path = led.folder.path / "report.json"
    entries = tuple(JournalEntry(5.0, event) for event in events)
    error = InvalidTransition("no")
    refusal = RefusedEvent(error, "", None, entries[0], 3, entries[1:], led.state)
    write_report(path, refusal, [], "", str)
    assert read_report(path).events == [(5.0, event) for event in (*events[1:], events[0])]


@pytest.mark.parametrize("text", ["", "{}", '{"until": "x"}', "[" * 100_000])
def test_what_is_no_report_is_refused_with_a_sentence(led: Led, text: str) -> None:
    path = led.folder.path / "report.json"
    path.write_text(text)
    ran = CliRunner().invoke(
        app, ["experiment", "replay", str(led.folder.path), "--then", "report.json"]
    )
    assert ran.exit_code == 3
