"""What is done for a head that is elsewhere: an agent is found or started, looked at, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from trial_runtime.agent import attending
from trial_runtime.agent.attending import Answer, Order, attend
from trial_runtime.agent.config import AgentConfig, TrialSpec, read_config
from trial_runtime.agent.processes.record import read_record, record_path, write_record
from trial_runtime.endpoint import Endpoint
from trial_runtime.trial_wire import VERSION


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bq-") as name:
        path = Path(name).resolve() / "lab"
        yield path
        attend(Order("end", str(path), "h1"))


def order(folder: Path, verb: str = "ensure", port: int = 1, **keys: object) -> Order:
    config = AgentConfig(
        worker="h1",
        slots=1,
        head=Endpoint(f"tcp://127.0.0.1:{port}"),
        epoch=int(str(keys.get("epoch", 1))),
        run_folder="",
        experiment_folder=str(folder),
        experiment="lab",
        trial=TrialSpec(str(folder.parent), command="true", stop_grace_s=0.5),
        weights_root=str(folder.parent),
        head_grace_s=600.0,
    )
    return Order(verb, str(folder), "h1", config, **keys)  # type: ignore[arg-type]


def test_one_is_started_found_again_told_its_heads_new_address_and_ended(folder: Path) -> None:
    first = attend(order(folder, environment={"BEQUEATH_SECRET_X": "s3cret"}))
    assert first.fresh
    assert b"s3cret" in Path(f"/proc/{first.pid}/environ").read_bytes()
    assert folder.stat().st_mode & 0o077 == 0
    again = attend(order(folder, port=2))
    assert again == Answer(first.pid), "it is the same one"
    assert attend(order(folder, "take up", port=3)) == Answer(first.pid)
    config = read_config(str(folder / "agent-h1.config.json"))
    assert config.head.address == "tcp://127.0.0.1:3"
    assert os.path.isabs(config.run_folder)
    assert attend(Order("look", str(folder), "h1")).pid == first.pid
    assert attend(Order("end", str(folder), "h1", ask=True, grace_s=60.0)) == Answer()
    assert os.waitpid(first.pid, os.WNOHANG)[0] == first.pid, "it is gone"
    assert not list(folder.glob("agent-h1*")), "keys and record go with it"


def test_the_same_said_by_way_of_two_connections_starts_one_agent(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first connection was lost while its order was carried out; mutation: no lock."""
    start, starts = attending.start_agent, []
    twice = threading.Event()
    answers: list[Answer] = []
    second = threading.Thread(target=lambda: answers.append(attend(order(folder, port=2))))

    def slowly(*told: Any) -> Any:
        starts.append(told)
        if len(starts) > 1:
            twice.set()
        else:
            second.start()
            assert not twice.wait(1.0)  # a second one would not wait
        return start(*told)

    monkeypatch.setattr(attending, "start_agent", slowly)
    first = attend(order(folder))
    second.join(60)
    assert answers == [Answer(first.pid)], "it was found"
    assert read_config(str(folder / "agent-h1.config.json")).head.address.endswith(":2")
    attend(Order("end", str(folder), "h1"))
    os.waitpid(first.pid, 0)


def test_an_order_by_a_dead_connection_does_not_undo_a_later_one(folder: Path) -> None:
    """Mutations: orders are carried out as they come; an older epoch counts for nothing."""
    first = attend(order(folder, epoch=2, number=1))
    assert attend(order(folder, "take up", port=7, epoch=2, number=3)).pid == first.pid
    late = [
        order(folder, "take up", port=6, epoch=2, number=2),
        order(folder, port=5, epoch=1, number=9),
        Order("end", str(folder), "h1", epoch=2, number=2),
    ]
    for each in late:
        answer = attend(each)
        assert answer.pid == 0
        assert "later" in answer.trouble
    config = read_config(str(folder / "agent-h1.config.json"))
    assert config.head.address.endswith(":7")
    assert attend(Order("look", str(folder), "h1", epoch=2, number=4)).pid == first.pid
    attend(Order("end", str(folder), "h1", epoch=2, number=5))
    os.waitpid(first.pid, 0)
    assert attend(order(folder, epoch=2, number=3)).pid == 0, "nor is one started again"
    again = attend(order(folder, epoch=1, number=1))
    assert again.fresh, "of a head whose journal was restored from a backup"


def test_what_a_dead_one_ran_is_ended_before_the_next_is_started(folder: Path) -> None:
    """Mutation: ``ensure`` sweeps nothing."""
    first = attend(order(folder))
    run_folder = attending.run_folder_of(folder)
    environment = {**os.environ, "BEQUEATH_SESSION": f"{run_folder}/s1.1.json"}
    left = subprocess.Popen(["sleep", "600"], env=environment)
    os.kill(first.pid, signal.SIGKILL)
    os.waitpid(first.pid, 0)
    told = attend(Order("look", str(folder), "h1"))
    assert told.pid == 0
    assert attend(order(folder, "take up")).pid == 0, "none is started unasked"
    assert left.poll() is None
    second = attend(order(folder))
    assert second.fresh
    assert left.wait(60) == -signal.SIGKILL


def test_one_that_ends_by_itself_takes_its_key_away(folder: Path) -> None:
    """Nobody else may ever reach its host again; mutation: the file stays."""
    told = order(folder)
    assert told.config is not None
    config = msgspec.structs.replace(told.config, head_grace_s=3.0, heartbeat_s=0.1)
    first = attend(msgspec.structs.replace(told, config=config))
    assert (folder / "agent-h1.config.json").exists()
    os.waitpid(first.pid, 0)
    assert [path.name for path in folder.glob("agent-h1*")] == ["agent-h1.json"], "it was here"
    assert "the grace time without a head" in attend(Order("look", str(folder), "h1")).trouble


def test_one_that_hears_nothing_is_ended_by_force(folder: Path) -> None:
    first = attend(order(folder))
    os.kill(first.pid, signal.SIGSTOP)
    attend(Order("end", str(folder), "h1", ask=True, grace_s=0.1))
    # Which of the two it obeys last is the kernel's choice, while it has no handler yet.
    assert os.waitpid(first.pid, 0)[1] in (signal.SIGKILL, signal.SIGTERM)


def test_an_order_by_stdin_and_what_cannot_be_done_as_an_answer(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = order(tmp_path / "file" / "lab")
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "trial_runtime.agent.attending"],
        input=msgspec.json.encode(told),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        check=True,
        timeout=60,
    )
    answer = msgspec.json.decode(ran.stdout, type=Answer)
    assert answer.pid == 0
    assert "Not a directory" in answer.trouble


def runtime(order: Order, folder: str) -> Order:
    assert order.config is not None
    return replace(order, config=replace(order.config, runtime=folder))


def test_one_with_another_version_of_our_code_is_known_and_goes_on(folder: Path) -> None:
    """Mutation: the record keeps no runtime, and each agent counts as another one."""
    ours = str(Path(attending.__file__).parents[2])
    first = attend(runtime(order(folder), ours))
    assert attend(runtime(order(folder), ours)) == Answer(first.pid)
    for verb in ("ensure", "take up"):
        later = attend(runtime(order(folder, verb), "/root/.bequeath/runtime/later"))
        assert later == Answer(first.pid, outdated=True)
    assert attend(order(folder)) == Answer(first.pid), "on its own machine nobody asks"
    attend(Order("end", str(folder), "h1"))
    os.waitpid(first.pid, 0)


def test_one_that_nobody_could_talk_with_is_replaced_at_once(folder: Path) -> None:
    first = attend(order(folder))
    path = record_path(folder, "h1")
    record = read_record(path)
    assert record is not None
    write_record(path, replace(record, wire=VERSION + 1))
    second = attend(order(folder))
    assert second.fresh
    assert second.pid != first.pid
    os.waitpid(first.pid, 0)
    attend(Order("end", str(folder), "h1"))
    os.waitpid(second.pid, 0)


def test_records_of_versions_before_are_read(folder: Path) -> None:
    folder.mkdir()
    record_path(folder, "h1").write_text('{"pid": 7, "started": "1", "boot": "b"}')
    record = read_record(record_path(folder, "h1"))
    assert record is not None
    assert (record.runtime, record.wire) == ("", 1)
