"""What trials elsewhere leave is brought here once, whatever happens on the way."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.attempt_files import fetching, gathering, transfer_threads, worker_fetching
from dispatcher.attempt_files.attempt_at import AttemptAt
from dispatcher.attempt_files.by_head import FilesByHead
from dispatcher.attempt_files.gathered import Gathered
from dispatcher.attempt_files.gathering import Gathering
from dispatcher.attempt_files.places import ShowsNoFiles
from dispatcher.attempt_files.transfer_threads import TransferThreads
from dispatcher.attempt_files.ways import is_fetched
from dispatcher.control.messages import PieceRead
from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.experiment import build_experiment
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.ports import AttemptFiles, FilePiece
from tests.support.processes import wait_until
from tests.unit.head.test_fetching import Elsewhere
from tests.unit.queries.evolution import evolve, make_folder

#: Trials of the made-up evolution: 11 failed, and all are over.
TRIALS = 13


class Host:
    """Takes the place of a machine; each attempt has printed its name there."""

    def __init__(self) -> None:
        self.trouble: BackendError | None = None
        self.trouble_with = ""  # this attempt only; all if empty
        self.asked: list[str] = []
        self.tries = 0
        self.gate = threading.Event()
        self.gate.set()

    def of(self, attempt: AttemptAt) -> AttemptFiles:
        assert self.gate.wait(120)
        self.tries += 1
        if self.trouble is not None and self.trouble_with in ("", attempt.name):
            raise self.trouble
        self.asked.append(attempt.name)
        return Elsewhere(
            stdout=attempt.name.encode(), artefacts__a=b"a" * 100, work__x=b"not wanted"
        )

    def close(self) -> None:
        pass


def is_fetching() -> bool:
    """Whether a thread of ours is there."""
    return any(thread.name.startswith("files") for thread in threading.enumerate())


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host()
    monkeypatch.setattr(worker_fetching, "PlaceFiles", lambda config, folder, place: made)
    monkeypatch.setattr(gathering, "EVERY_S", 0.01)
    monkeypatch.setattr(worker_fetching, "FIRST_PAUSE_S", 0.01)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> ExperimentFolder:
    made = make_folder(tmp_path / "kept")
    evolve(made, TRIALS)
    with sqlite3.connect(made / "journal.sqlite") as store:
        store.execute("UPDATE attempts SET worker = 'far'")
    return ExperimentFolder(made)


def of(folder: ExperimentFolder, said: list[str] | None = None, **keys: Any) -> Gathering:
    config = build_experiment(
        {
            "searchSpace": {"lr": {"_type": "choice", "_value": [1]}},
            "tuner": {"name": "Random"},
            "trialCommand": "true",
            "trialConcurrency": 4,
            "trialCodeDirectory": str(folder.path),
            "trainingService": {"platform": "ssh", "machineList": [{"host": "far"}]},
            **keys,
        }
    )
    return Gathering(config, folder, (said if said is not None else []).append)


def brought(folder: ExperimentFolder) -> list[int]:
    return sorted(int(path.parent.parent.name) for path in folder.path.glob("trials/*/*/stdout"))


def attempts(folder: ExperimentFolder) -> int:
    with sqlite3.connect(folder.journal) as store:
        return int(store.execute("SELECT count(*) FROM attempts").fetchone()[0])


def test_all_is_brought_here_and_asked_for_once(folder: ExperimentFolder, host: Host) -> None:
    said: list[str] = []
    assert list(of(folder, said).once()) == [("far", attempts(folder), None)]
    assert brought(folder) == list(range(TRIALS))
    assert (folder.path / "trials/3/1/artefacts/a").exists()
    assert not (folder.path / "trials/3/1/work").exists()
    assert is_fetched(folder, AttemptAt("far", 3, 1), "logs")
    assert not is_fetched(folder, AttemptAt("far", 3, 1), "work")
    host.asked.clear()
    assert list(of(folder, said).once()) == [("far", 0, None)]
    assert (host.asked, said) == ([], [])
    assert Gathered.read(folder.path, "far").below == TRIALS


def test_another_wish_is_another_look(folder: ExperimentFolder, host: Host) -> None:
    list(of(folder).once())
    list(of(folder, fetch={"work": "onEnd"}).once())
    assert (folder.path / "trials/3/1/work/x").exists()
    assert list(of(folder, fetch="never").once()) == []


def test_what_goes_on_is_not_touched(folder: ExperimentFolder, host: Host) -> None:
    with sqlite3.connect(folder.journal) as store:
        store.execute("UPDATE attempts SET end_reason = NULL WHERE trial = 4")
        store.execute("UPDATE trials SET state = 'running' WHERE id = 4")
    list(of(folder).once())
    assert 4 not in brought(folder)
    record = Gathered.read(folder.path, "far")
    assert (record.below, record.has(5, 1), record.has(4, 1)) == (4, True, False)
    with sqlite3.connect(folder.journal) as store:
        store.execute("UPDATE attempts SET end_reason = 'finished' WHERE trial = 4")
        store.execute("UPDATE trials SET state = 'ended' WHERE id = 4")
    host.asked.clear()
    list(of(folder).once())
    assert host.asked == ["4.1"]


@pytest.mark.parametrize("then", ["attempt = 2", "state = 'ended'"])
def test_what_was_lost_with_its_machine_is_brought_when_that_is_back(
    folder: ExperimentFolder, host: Host, then: str
) -> None:
    """Nobody reports its end. Mutations: only reported ends count; a trial that goes on is over."""
    with sqlite3.connect(folder.journal) as store:
        store.execute("UPDATE attempts SET end_reason = NULL WHERE trial = 4")
        store.execute("UPDATE trials SET state = 'running', attempt = 1 WHERE id = 4")
    list(of(folder).once())
    assert "4.1" not in host.asked
    with sqlite3.connect(folder.journal) as store:
        store.execute(f"UPDATE trials SET {then} WHERE id = 4")
    list(of(folder).once())
    assert host.asked[-1] == "4.1"


def test_a_machine_that_is_away_is_tried_again(folder: ExperimentFolder, host: Host) -> None:
    said: list[str] = []
    host.trouble = PassingBackendError("does not answer", where="far")
    one = of(folder, said)
    one.start()
    wait_until(lambda: host.tries > 2, "it is tried again")
    assert brought(folder) == []
    host.trouble = None
    wait_until(lambda: brought(folder) == list(range(TRIALS)), "all is here")
    one.finish(120)
    assert not is_fetching()
    assert said == [], "what passes is not worth a word"


def test_the_end_waits_for_machines_that_answer_only(
    folder: ExperimentFolder, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_fetching, "FIRST_PAUSE_S", 3600.0)
    said: list[str] = []
    host.trouble = PermanentBackendError("lets nobody in", where="far")
    one = of(folder, said)
    one.start()
    wait_until(lambda: said, "that is said")
    one.finish(120)
    assert not is_fetching()
    assert host.tries == 2, "the second attempt shows that it is the machine"
    assert said[0] == "files of far cannot be fetched: far: lets nobody in"
    assert f"{attempts(folder)} on far" in said[1]
    assert f"bequeath experiment fetch {folder.id}" in said[1]


def test_an_attempt_whose_files_cannot_be_had_holds_up_no_other(
    folder: ExperimentFolder, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: it is not put off; it counts as trouble of the machine."""
    monkeypatch.setattr(worker_fetching, "FIRST_PAUSE_S", 3600.0)
    host.trouble = PermanentBackendError("lists what are no files", where="far")
    host.trouble_with = "3.1"
    said: list[str] = []
    one = of(folder, said)
    one.start()
    others = [n for n in range(TRIALS) if n != 3]
    wait_until(lambda: brought(folder) == others, "all others are here")
    one.finish(120)
    assert not is_fetching()
    assert said[0] == "files of far cannot be fetched: far: lists what are no files"
    assert Gathered.read(folder.path, "far").below == 3
    assert [(n, str(error)) for _, n, error in of(folder).once()] == [(0, str(host.trouble))]
    host.trouble = None
    assert list(of(folder).once()) == [("far", 1, None)]
    assert brought(folder) == list(range(TRIALS))


def test_a_platform_that_shows_no_files_is_left_in_peace(
    folder: ExperimentFolder, host: Host
) -> None:
    said: list[str] = []
    host.trouble = ShowsNoFiles("shows no files")
    one = of(folder, said)
    one.start()
    wait_until(lambda: not is_fetching(), "its thread ends")
    one.finish(120)
    assert said == []


def test_where_only_agents_see_files_they_are_asked_when_somebody_wants_them(
    folder: ExperimentFolder, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: nobody is asked; an attempt whose place has gone holds up the others."""
    host.trouble = ShowsNoFiles("shows no files")

    def answer(self: FilesByHead, path: str, offset: int, limit: int, most: int) -> PieceRead:
        if not most:
            return PieceRead(b"printed"[offset:], 7, "v", "i")
        listed = b'{"files": [["stdout", 7, 1.0, "v", false]], "cut": false}'
        return PieceRead(gone=True) if self.name == "3.1" else PieceRead(listed, len(listed), "l")

    monkeypatch.setattr(FilesByHead, "ask", answer)
    assert list(of(folder).once()) == [("far", attempts(folder), None)]
    assert brought(folder) == [each for each in range(TRIALS) if each != 3]
    assert (folder.path / "trials/4/1/stdout").read_bytes() == b"printed"


def test_an_end_in_the_midst_leaves_the_rest_to_the_next(
    folder: ExperimentFolder, host: Host
) -> None:
    host.gate.clear()
    one = of(folder)
    one.start()
    one.finish(0.0)
    host.gate.set()
    wait_until(lambda: not is_fetching(), "it ends by itself")
    assert len(brought(folder)) <= 1
    list(of(folder).once())
    assert brought(folder) == list(range(TRIALS))


def test_a_disk_that_is_low_gets_nothing(
    folder: ExperimentFolder, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = SimpleNamespace(f_frsize=4096, f_blocks=10**9, f_bavail=10)
    monkeypatch.setattr(os, "statvfs", lambda place: low)
    ((_, count, error),) = of(folder).once()
    assert (count, "disk here is low" in str(error)) == (0, True)
    assert host.asked == []


def test_what_does_not_fit_is_left_and_said_in_the_record(
    folder: ExperimentFolder, host: Host
) -> None:
    list(of(folder, fetch={"maxSize": "50b"}).once())
    assert brought(folder) == list(range(TRIALS))
    record = json.loads((folder.path / "trials/3/1/.fetched.json").read_text())
    assert list(record["left"]) == ["artefacts/a"]
    assert not is_fetched(folder, AttemptAt("far", 3, 1), "artefacts")
    assert is_fetched(folder, AttemptAt("far", 3, 1), "logs")


def many(
    folder: ExperimentFolder, monkeypatch: pytest.MonkeyPatch, workers: int
) -> tuple[Gathering, dict[str, Host]]:
    """Machines ``far0`` and so on, among which the attempts are dealt out in turns."""
    hosts = {f"far{number}": Host() for number in range(workers)}
    monkeypatch.setattr(
        worker_fetching, "PlaceFiles", lambda config, folder, place: hosts[place.worker]
    )
    with sqlite3.connect(folder.journal) as store:
        store.execute("UPDATE attempts SET worker = 'far' || (trial % ?)", (workers,))
    machines = [{"host": name} for name in hosts]
    service = {"platform": "ssh", "machineList": machines}
    return of(folder, trainingService=service, trialConcurrency=workers), hosts


def test_one_worker_that_hangs_holds_up_no_other(
    folder: ExperimentFolder, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: one thread fetches for all; the looking waits for who fetches."""
    with sqlite3.connect(folder.journal) as store:
        store.execute("UPDATE attempts SET end_reason = NULL WHERE trial = 2")
        store.execute("UPDATE trials SET state = 'running' WHERE id = 2")
    one, hosts = many(folder, monkeypatch, 4)
    hosts["far1"].gate.clear()
    one.start()
    others = [trial for trial in range(TRIALS) if trial % 4 != 1]
    wait_until(lambda: brought(folder) == [n for n in others if n != 2], "those of all others")
    with sqlite3.connect(folder.journal) as store:
        store.execute("UPDATE attempts SET end_reason = 'finished' WHERE trial = 2")
        store.execute("UPDATE trials SET state = 'ended', touched = touched + 1000 WHERE id = 2")
    wait_until(lambda: brought(folder) == others, "and of one that ends meanwhile")
    hosts["far1"].gate.set()
    wait_until(lambda: brought(folder) == list(range(TRIALS)), "all is here")
    one.finish(120)
    assert not is_fetching()


def test_a_thousand_workers_have_a_few_threads(
    folder: ExperimentFolder, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: a thread for each worker; threads of transfers outlive the close."""
    with sqlite3.connect(folder.journal) as store:
        kept = [row[1] for row in store.execute("PRAGMA table_info(trials)") if row[1] != "id"]
        columns = ", ".join(kept)
        for number in range(TRIALS, 1_000):
            store.execute(
                f"REPLACE INTO trials (id, {columns}) SELECT ?, {columns} FROM trials WHERE id = 0",
                (number,),
            )
            store.execute(
                "REPLACE INTO attempts (trial, attempt, end_reason) VALUES (?, 1, 'finished')",
                (number,),
            )
    one, hosts = many(folder, monkeypatch, 1_000)
    before = threading.active_count()
    one.start()
    most = 0

    def all_are_here() -> bool:
        nonlocal most
        most = max(most, threading.active_count() - before)
        return all(each.asked for each in hosts.values())

    wait_until(all_are_here, "each has been asked")
    one.finish(120)
    assert not is_fetching()
    assert 1 < most <= 1 + transfer_threads.MOST
    assert brought(folder) == list(range(1_000))
    assert Gathered.read(folder.path, "far999").below == 1_000


def test_a_slow_transfer_makes_room_and_goes_on_where_it_was(
    folder: ExperimentFolder, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: a turn has no end; what was cut is begun anew."""
    monkeypatch.setattr(transfer_threads, "MOST", 1)
    monkeypatch.setattr(fetching, "CHUNK_BYTES", 1)
    one, hosts = many(folder, monkeypatch, 2)
    read, puts, own_put = list[tuple[str, int]](), list[bool](), TransferThreads.put

    def put(self: TransferThreads, work: Any, *, doubtful: bool = False) -> None:
        own_put(self, work, doubtful=doubtful)
        puts.append(doubtful)

    monkeypatch.setattr(TransferThreads, "put", put)

    class Slow(Elsewhere):
        def read(self, path: str, offset: int, limit: int) -> FilePiece | None:
            if offset == 10:
                wait_until(lambda: len(puts) >= 2, "another one waits")
                monkeypatch.setattr(transfer_threads, "TURN_S", 0.0)
            read.append((path, offset))
            before.append(bool(hosts["far1"].asked))
            return super().read(path, offset, limit)

    before: list[bool] = []
    made = Slow(stdout=b"x" * 50)
    monkeypatch.setattr(hosts["far0"], "of", lambda attempt: made)
    with sqlite3.connect(folder.journal) as store:
        store.execute("DELETE FROM attempts WHERE trial NOT IN (0, 1)")
    one.start()
    wait_until(lambda: brought(folder) == [0, 1], "both are here")
    one.finish(120)
    assert (folder.path / "trials/0/1/stdout").read_bytes() == b"x" * 50
    assert len(read) == len(set(read)), "nothing comes twice"
    assert (before[10], before[-1]) == (False, True), "its turn was over in between"


def test_a_torn_record_is_none(folder: ExperimentFolder) -> None:
    for text in ("", "[]", '{"kinds": 3}', '{"kinds": [], "below": "x", "done": []}'):
        (folder.path / "fetched-far.json").write_text(text)
        assert Gathered.read(folder.path, "far", ("logs",)) == Gathered(["logs"])
