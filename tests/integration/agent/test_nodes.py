"""Trials of several nodes: real agents of one allocation, which are processes of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from tests.integration.agent.fake_head import PATIENCE_S, ROOT, FakeHead
from tests.support.processes import wait_until
from tests.support.workers import agent_config
from trial_runtime.agent.config import encode_config
from trial_runtime.agent.nodes.meeting import Leader, Meeting
from trial_runtime.facts import EndReason

#: What each rank of a trial does, as far as its own is concerned.
SHOW = """
import json, os
names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK",
         "LOCAL_WORLD_SIZE", "GROUP_RANK", "PET_NNODES", "PET_NODE_RANK", "PET_MASTER_ADDR",
         "PET_MASTER_PORT")
print(json.dumps({name: os.environ.get(name) for name in names}), flush=True)
"""

RING = """
import os, socket, trial_runtime as t
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
there = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
value = t.get_next_parameter()["x"] * (rank + 1)
t.report_intermediate(rank)
if rank == 0:
    with socket.create_server(there) as door:
        total = value
        for _ in range(world - 1):
            connection, _ = door.accept()
            total += int(connection.makefile().readline())
            connection.close()
    t.report_final_result(total)
else:
    while True:
        try:
            connection = socket.create_connection(there, timeout=30)
            break
        except ConnectionRefusedError:
            pass
    connection.sendall(b"%d\\n" % value)
    t.report_final_result(-1)
"""

HOLD = """
import os, pathlib, signal, sys
rank = int(os.environ["RANK"])
pathlib.Path(f"pid.{rank}.new").write_text(str(os.getpid()))
os.rename(f"pid.{rank}.new", f"pid.{rank}")
"""

#: Until all ranks are there.
ALL_HOLD = """
while not all(os.path.exists(f"pid.{each}") for each in range(int(os.environ["WORLD_SIZE"]))):
    pass
"""


class Allocation(FakeHead):
    """A head with the agents of one allocation."""

    nodes = 3
    claims = False

    def config(self) -> Any:
        self.changes = {"slots": 1, "nodes": self.nodes, "ticket": "a ticket", **self.changes}
        return super().config()

    def launch(self) -> None:
        path = self.folder / "agent.config"
        path.write_bytes(encode_config(self.config()))
        self.agents = [self.launch_node(rank) for rank in range(self.nodes)]
        self.process = self.agents[0]

    def launch_node(self, rank: int) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "BEQUEATH_NODE_ADDRESS": "127.0.0.1"}
        if not self.claims:
            environment["BEQUEATH_RANK"] = str(rank)
        if self.changes.get("launched"):
            environment |= {"MASTER_ADDR": "job-master-0", "RANK": str(10 + rank)}
        with open(self.folder / "agent.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "trial_runtime.agent", str(self.folder / "agent.config")],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def pid_of(self, rank: int) -> int:
        path = self.code / f"pid.{rank}"
        wait_until(path.exists, f"rank {rank} runs")
        return int(path.read_text())

    def close(self) -> None:
        super().close()
        for agent in self.agents:
            if agent.poll() is None:
                agent.kill()
            agent.wait(PATIENCE_S)


@pytest.fixture
def allocation() -> Iterator[Callable[..., Allocation]]:
    made: list[Allocation] = []
    with tempfile.TemporaryDirectory(prefix="bq-") as folder:

        def make(script: str, *, claims: bool = False, **changes: Any) -> Allocation:
            head = Allocation(
                Path(folder).resolve(), command=f"{sys.executable} train.py", **changes
            )
            head.claims = claims
            head.script(script)
            made.append(head)
            head.launch()
            head.until(lambda: head.life, "hello")
            return head

        try:
            yield make
        finally:
            for head in made:
                head.close()


def test_each_rank_has_the_variables_of_torchrun(allocation: Callable[..., Allocation]) -> None:
    head = allocation(SHOW)
    assert head.run().reason == EndReason.FINISHED
    shown = [
        json.loads(head.output(1, stream=name))
        for name in ("stdout", "stdout.rank1", "stdout.rank2")
    ]
    for rank, variables in enumerate(shown):
        own = {"RANK", "NODE_RANK", "GROUP_RANK", "PET_NODE_RANK"}
        assert {variables[name] for name in own} == {str(rank)}
        assert (variables["WORLD_SIZE"], variables["PET_NNODES"]) == ("3", "3")
        assert (variables["LOCAL_RANK"], variables["LOCAL_WORLD_SIZE"]) == ("0", "1")
        assert variables["MASTER_ADDR"] == variables["PET_MASTER_ADDR"] == "127.0.0.1"
        assert variables["MASTER_PORT"] == shown[0]["PET_MASTER_PORT"]


def test_ranks_meet_and_rank_0_alone_reports(allocation: Callable[..., Allocation]) -> None:
    """By claims. One trial after another in the same allocation."""
    head = allocation(RING, claims=True)
    for trial in (1, 2):
        assert head.run(trial, parameters={"x": trial}).reason == EndReason.FINISHED
        assert head.finals(trial) == [6 * trial]
        assert head.metrics(trial) == [0]
    assert len({hello.life for hello in head.hellos}) == 1


def test_a_variable_of_the_users_own_counts(allocation: Callable[..., Allocation]) -> None:
    head = allocation(SHOW, environment={"MASTER_PORT": "12345"})
    head.run()
    assert json.loads(head.output(1, stream="stdout.rank2"))["MASTER_PORT"] == "12345"


def test_variables_of_a_launcher_count(allocation: Callable[..., Allocation]) -> None:
    """On each rank its own, and ours for the rest. Mutation: ours take their place."""
    head = allocation(SHOW, launched=True)
    head.run()
    for rank, name in enumerate(("stdout", "stdout.rank1", "stdout.rank2")):
        variables = json.loads(head.output(1, stream=name))
        assert (variables["MASTER_ADDR"], variables["RANK"]) == ("job-master-0", str(10 + rank))
        assert (variables["NODE_RANK"], variables["WORLD_SIZE"]) == (str(rank), "3")


def test_the_first_bad_exit_ends_all(allocation: Callable[..., Allocation]) -> None:
    head = allocation(
        HOLD + ALL_HOLD + "if rank == 2: print('no such layer', file=sys.stderr); sys.exit(7)\n"
        "signal.pause()\n"
    )
    end = head.run()
    assert (end.reason, end.exit_code) == (EndReason.FAILED, 7)
    assert end.text.startswith("rank 2 on ")
    assert end.text.splitlines()[-1] == "no such layer"
    for rank in range(3):
        assert not Path(f"/proc/{head.pid_of(rank)}").exists()


def test_secrets_are_masked_whichever_rank_prints_them(
    allocation: Callable[..., Allocation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_KEY", "hunter2 hunter2")
    script = HOLD + "if rank == 2: sys.exit('no ' + os.environ['KEY'])\nsignal.pause()\n"
    head = allocation(script, environment={"KEY": "env:LAB_KEY"})
    assert head.run().text.splitlines()[-1] == "no [masked]"


def test_a_bad_exit_of_rank_0_ends_all(allocation: Callable[..., Allocation]) -> None:
    head = allocation(HOLD + "if rank == 0: sys.exit('wrong')\nsignal.pause()\n")
    end = head.run()
    assert (end.reason, end.exit_code, end.text) == (EndReason.FAILED, 1, "wrong")


def test_ranks_that_outlive_rank_0_are_no_failure(allocation: Callable[..., Allocation]) -> None:
    head = allocation(
        "import trial_runtime as t\n" + HOLD + "if rank: signal.pause()\n"
        "t.report_final_result(1)\n",
        stop_grace_s=0.5,
    )
    assert head.run().reason == EndReason.FINISHED
    assert head.finals(1) == [1]


def test_a_stop_reaches_all_ranks(allocation: Callable[..., Allocation]) -> None:
    from tests.support.workers import LOCAL
    from trial_runtime import facts

    head = allocation(HOLD + "signal.pause()\n")
    head.start(1)
    pids = [head.pid_of(rank) for rank in range(3)]
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.KILLED, 5.0))
    assert head.end_of(1).reason == EndReason.KILLED
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_rank_that_ignores_sigterm_is_killed(allocation: Callable[..., Allocation]) -> None:
    head = allocation(
        "import signal; signal.signal(15, signal.SIG_IGN)\n" + HOLD + "if rank == 0: sys.exit(3)\n"
        "signal.pause()\n",
        stop_grace_s=0.5,
    )
    assert head.run().exit_code == 3


def test_a_node_that_dies_loses_the_trial(allocation: Callable[..., Allocation]) -> None:
    """Its agent is killed with all it ran: the others end, and the allocation is given back."""
    head = allocation(HOLD + "signal.pause()\n")
    head.start(1)
    pids = [head.pid_of(rank) for rank in range(3)]
    head.agents[1].kill()
    end = head.end_of(1)
    assert end.reason == EndReason.LOST
    assert "rank 1) of its allocation is lost" in end.text
    assert [agent.wait(PATIENCE_S) for agent in (head.agents[0], head.agents[2])] == [0, 0]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_place_that_is_taken_back_from_one_node(allocation: Callable[..., Allocation]) -> None:
    head = allocation(HOLD + "signal.pause()\n")
    head.start(1)
    pids = [head.pid_of(rank) for rank in range(3)]
    os.kill(head.agents[2].pid, signal.SIGTERM)
    assert head.end_of(1).reason == EndReason.PREEMPTED
    assert any(beat.leaving for beat in head.heartbeats)
    assert [agent.wait(PATIENCE_S) for agent in head.agents] == [0, 0, 0]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_rank_0_is_killed(allocation: Callable[..., Allocation]) -> None:
    head = allocation(HOLD + "signal.pause()\n")
    head.start(1)
    pids = [head.pid_of(rank) for rank in range(3)]
    head.agents[0].kill()
    assert [agent.wait(PATIENCE_S) for agent in head.agents[1:]] == [0, 0]
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "their end")


def test_a_node_that_is_started_twice(allocation: Callable[..., Allocation]) -> None:
    head = allocation(RING, claims=True)
    fourth = head.launch_node(3)
    assert fourth.wait(PATIENCE_S) == 1
    assert "are there already" in head.log()
    assert head.run(parameters={"x": 1}).reason == EndReason.FINISHED


def test_rank_0_that_cannot_be_reached_is_named(
    allocation: Callable[..., Allocation], tmp_path: Path
) -> None:
    head = allocation(SHOW)
    head.folder, before = tmp_path, head.folder
    try:
        config = msgspec.structs.replace(head.config(), experiment_folder=str(tmp_path))
        (tmp_path / "agent.config").write_bytes(encode_config(config))
        meeting = Meeting(tmp_path, config.ticket, config.nodes)
        meeting.rank("NONE")
        key = zmq.curve_keypair()[0].decode()
        meeting.open(Leader("tcp://127.0.0.1:9", "127.0.0.1", key, "token"))
        assert head.launch_node(1).wait(PATIENCE_S) == 1
        assert "rank 0 does not answer at tcp://127.0.0.1:9" in head.log()
    finally:
        head.folder = before


def test_rank_0_with_an_address_of_another_node_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a traceback. A machine may have a name that leads elsewhere."""
    config = agent_config(tmp_path, "w", nodes=2, ticket="a ticket")
    (tmp_path / "agent.config").write_bytes(encode_config(config))
    monkeypatch.setenv("BEQUEATH_NODE_ADDRESS", "192.0.2.77")
    argv = [sys.executable, "-m", "trial_runtime.agent", str(tmp_path / "agent.config")]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, timeout=PATIENCE_S, check=False)
    (line,) = ended.stderr.decode().splitlines()
    assert line.startswith("cannot listen at 192.0.2.77 for the other nodes: Cannot assign")
    assert "BEQUEATH_NODE_ADDRESS" in line
    assert ended.returncode == 1


def test_nothing_is_left_of_the_meeting_but_the_mark_that_it_is_over(
    allocation: Callable[..., Allocation],
) -> None:
    from trial_runtime import wire

    head = allocation(SHOW)
    assert list(head.folder.glob("meeting-*/leader"))
    head.send(wire.Shutdown(0.0))
    assert [agent.wait(PATIENCE_S) for agent in head.agents] == [0, 0, 0]
    (mark,) = head.folder.glob("meeting-*")
    assert mark.suffix == ".over"
    assert mark.stat().st_size == 0
