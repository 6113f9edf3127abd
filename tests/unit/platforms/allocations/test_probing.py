"""A place is looked over before the first order, by the real program in a process of its own."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dispatcher.errors import PassingBackendError
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.agents.process import Loss
from dispatcher.platforms.allocations import probe as probe_module
from dispatcher.platforms.allocations.allocation import AllocationOrder, Bounds, Gone
from dispatcher.platforms.allocations.pool import AllocationPool
from dispatcher.platforms.allocations.probe import (
    ProbeNeeds,
    findings_of_place,
    recorded,
    text_of,
)
from dispatcher.platforms.allocations.probing import probe_once
from dispatcher.platforms.allocations.process import AllocationProcess, Load
from dispatcher.remote_python.findings import HostNeeds
from dispatcher.remote_python.gpu_findings import AllGpus, judge_gpus
from dispatcher.remote_python.on_host import allocation as program
from dispatcher.remote_python.probed import FolderFacts, Probed, PythonFacts
from dispatcher.wheelhouse import HostPython, Wheel, WheelCache
from dispatcher.wheelhouse.pip import PipFailed
from tests.support.fake_nvml import FakeDriver, Gpu
from tests.support.processes import wait_until
from tests.unit.platforms.allocations.test_pool import CONFIG, S, Scheduler
from trial_runtime.agent.config import AgentConfig, encode_config
from trial_runtime.weights.remote.address import RemoteRoot

NEEDS = ProbeNeeds(brings_code=True)


class Machines(Scheduler):
    """A scheduler whose allocations for probes are processes here; others never begin."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = True
        self.ends = True  # in its list, when the program has
        self.printed: dict[str, str] = {}

    def submit(self, order: AllocationOrder) -> None:
        super().submit(order)
        if self.runs and order.config.probe is not None:
            threading.Thread(target=self.run, args=(order,), daemon=True).start()

    def run(self, order: AllocationOrder, *variables: dict[str, str]) -> None:
        """On as many nodes as there are variables of them, one if none are given."""
        path = Path(order.config.experiment_folder, "config")
        path.write_bytes(encode_config(order.config))
        command = [sys.executable, *order.arguments, str(path)]
        begun = [
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, **each},
            )
            for each in variables or ({},)
        ]
        said = [each.communicate(timeout=60) for each in begun]
        self.printed[order.name] = "".join(out for out, _ in said)
        gone = Gone.FAILED if any(each.returncode for each in begun) else Gone.FINISHED
        if self.ends:
            self.says(order.name, S.ENDED, gone=gone, reason=said[0][1][-300:])

    def answer(self, order: AllocationOrder) -> str:
        return text_of(order) or self.printed.get(order.name, "")

    @property
    def probes(self) -> list[AllocationOrder]:
        return [order for order in self.orders if order.config.probe is not None]


@pytest.fixture
def door() -> Iterator[int]:
    """A port at which somebody greets as ZeroMQ does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            try:
                while True:
                    with listening.accept()[0] as line:
                        line.sendall(b"\xff\0\0\0\0\0\0\0\x01\x7f")
            except OSError:
                return

        threading.Thread(target=greet, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def agent(door: int, tmp_path: Path) -> AgentConfig:
    head = replace(CONFIG.head, address=f"tcp://127.0.0.1:{door}")
    (tmp_path / "weights").mkdir()
    return replace(CONFIG, head=head, weights_root=str(tmp_path / "weights"))


@pytest.fixture
def new_pool(tmp_path: Path) -> Iterator[Callable[..., list[AllocationProcess]]]:
    made: list[AllocationProcess] = []

    def make(
        scheduler: Machines, config: AgentConfig, limit_s: float = math.inf
    ) -> list[AllocationProcess]:
        bounds = Bounds(2, 2, limit_s=limit_s)
        pool = AllocationPool(lambda: scheduler, "lab", bounds, probes=NEEDS)
        homes = [(f"q-{n}", tmp_path / f"q-{n}") for n in (1, 2)]
        processes = [pool.process(*each, load=lambda: Load(1, True)) for each in homes]
        for each in processes:
            each.ensure(replace(config, worker=each.place))
        made.extend(processes)
        return processes

    yield make
    for process in made:
        process.end(time.monotonic())


def test_nothing_is_ordered_before_a_place_is_known_to_do(
    new_pool: Callable[..., list[AllocationProcess]], agent: AgentConfig, tmp_path: Path
) -> None:
    """Mutations: orders beside the probe; something that stays of it; a probe by each head."""
    scheduler = Machines()
    scheduler.runs = False
    processes = new_pool(scheduler, agent)
    wait_until(lambda: scheduler.probes, "a probe is ordered")
    scheduler.says(scheduler.probes[0].name, S.WAITING, reason="Priority")
    wait_until(lambda: "Priority" in _reason(processes[0]), "its wait is explained")
    assert "looked over before the first trial" in _reason(processes[0])
    assert scheduler.orders == scheduler.probes
    scheduler.run(scheduler.probes[0])
    wait_until(lambda: len(scheduler.orders) == 3, "both workers have an order")
    assert len(scheduler.probes) == 1
    assert not list((tmp_path / "weights").iterdir())
    assert not list(tmp_path.glob("q-*/*.answer"))
    for each in processes:
        each.leave()
    again = Machines()
    again.listed = dict(scheduler.listed)
    new_pool(again, agent)
    wait_until(lambda: again.looks > 5, "the next head looks")
    assert not again.probes


def test_what_is_wrong_ends_the_start(
    new_pool: Callable[..., list[AllocationProcess]], agent: AgentConfig, tmp_path: Path
) -> None:
    """Mutation: orders all the same."""
    scheduler = Machines()
    processes = new_pool(scheduler, replace(agent, weights_root=str(tmp_path / "nowhere")))
    losses: list[Loss] = []

    def lost() -> bool:
        losses.extend(loss for each in processes if (loss := each.look(0.0)))
        return len(losses) == 2

    wait_until(lost, "both workers are lost")
    assert all(loss.hopeless for loss in losses)
    assert f"{tmp_path}/nowhere is not there" in losses[0].reason
    assert "see weightsRoot" in losses[0].reason
    assert scheduler.orders == scheduler.probes


def test_a_probe_whose_place_was_taken_back_is_ordered_anew(
    new_pool: Callable[..., list[AllocationProcess]], agent: AgentConfig
) -> None:
    scheduler = Machines()
    scheduler.runs = False
    new_pool(scheduler, agent)
    wait_until(lambda: scheduler.probes, "a probe is ordered")
    scheduler.runs = True
    scheduler.says(scheduler.probes[0].name, S.ENDED, gone=Gone.PREEMPTED)
    wait_until(lambda: len(scheduler.orders) == 4, "both workers have an order")
    assert len(scheduler.probes) == 2


def test_where_each_place_is_taken_back_trials_get_theirs_nevertheless(
    new_pool: Callable[..., list[AllocationProcess]], agent: AgentConfig
) -> None:
    """Mutation: a queue that preempts three probes ends the experiment, though its trials would
    be run again without blame."""
    scheduler = Machines()
    scheduler.runs = False
    process, _ = new_pool(scheduler, agent)
    for number in range(probe_module.MOST_TRIES):
        wait_until(lambda: len(scheduler.probes) > number, "a probe is ordered")  # noqa: B023
        scheduler.says(scheduler.probes[number].name, S.ENDED, gone=Gone.PREEMPTED)
    wait_until(lambda: len(scheduler.orders) == number + 3, "both workers have an order")
    assert len(scheduler.probes) == probe_module.MOST_TRIES
    assert process.trouble == ""


def test_a_probe_that_waits_for_longer_than_any_may_is_given_up(
    new_pool: Callable[..., list[AllocationProcess]], agent: AgentConfig
) -> None:
    """Mutation: what `allocations.limit` says counts for workers alone."""
    scheduler = Machines()
    scheduler.runs = False
    process, _ = new_pool(scheduler, agent, limit_s=0.1)
    losses: list[Loss] = []

    def lost() -> bool:
        losses.extend(loss for loss in [process.look(0.0)] if loss is not None)
        return bool(losses)

    wait_until(lost, "it is lost")
    assert losses[0].hopeless
    assert "it has waited for its place for 0 s" in losses[0].reason
    assert [name for name, _ in scheduler.cancelled] == [scheduler.probes[0].name]


def test_a_probe_that_waits_when_the_head_ends_is_cancelled(
    new_pool: Callable[..., list[AllocationProcess]], agent: AgentConfig
) -> None:
    scheduler = Machines()
    scheduler.runs = False
    processes = new_pool(scheduler, agent)
    wait_until(lambda: scheduler.probes, "a probe is ordered")
    for each in processes:
        each.end(time.monotonic())
    assert scheduler.probes[0].name in [name for name, _ in scheduler.cancelled]


def test_a_probe_that_has_answered_and_not_ended_is_not_left(
    new_pool: Callable[..., list[AllocationProcess]], agent: AgentConfig, tmp_path: Path
) -> None:
    """Its scheduler says so a moment later, when the head has ended for what the answer was.
    Mutation: only those are cancelled whose answer is waited for."""
    scheduler = Machines()
    scheduler.ends = False
    processes = new_pool(scheduler, replace(agent, weights_root=str(tmp_path / "nowhere")))
    wait_until(lambda: processes[0].look(0.0), "it is lost")
    for each in processes:
        each.end(time.monotonic())
    wait_until(lambda: scheduler.closed, "the service has ended")
    (probe,) = scheduler.probes
    assert scheduler.listed[probe.name].gone is Gone.CANCELLED


def _reason(process: AllocationProcess) -> str:
    waiting = process.waiting()
    return "" if waiting is None else waiting.reason


# -- one, while somebody waits -----------------------------------------------------------------


def test_one_is_asked_for_while_somebody_waits(agent: AgentConfig, tmp_path: Path) -> None:
    scheduler = Machines()
    scheduler.first = S.RUNNING
    record = tmp_path / "not/yet/there"
    needs = with_fields(NEEDS, record=record)
    found = probe_once(scheduler, "lab", agent, tmp_path / "home", needs, 60.0)
    known = recorded(record)
    assert known is not None
    assert known.executable == sys.executable
    problems = [each for each in found if each.severity is Severity.PROBLEM]
    assert problems == []
    topics = {each.topic: each.text for each in found}
    assert topics["head"] == "an agent there reaches the head: directly"
    assert topics["weights"].endswith("can be written, the same folder as here")
    assert topics["clock"].startswith("as ours")
    assert (scheduler.cleared, scheduler.closed) == (1, 1)
    assert not list((tmp_path / "weights").iterdir())


def test_a_queue_that_takes_longer_is_no_problem(agent: AgentConfig, tmp_path: Path) -> None:
    scheduler = Machines()
    scheduler.runs = False
    (finding,) = probe_once(scheduler, "lab", agent, tmp_path / "home", NEEDS, 0.05)
    assert finding.severity is Severity.NOTE
    assert "no answer within" in finding.text
    assert scheduler.cancelled, "nothing is left"


def test_one_that_has_answered_and_not_ended_is_ended(agent: AgentConfig, tmp_path: Path) -> None:
    """Its scheduler was away for a moment. Mutations: its scheduler is waited for, which may take
    longer; it is asked once."""
    scheduler = Machines()
    scheduler.ends = False
    usual, tries = scheduler.cancel, []

    def cancel(names: Sequence[str], grace_s: float) -> None:
        tries.append(names)
        if len(tries) == 1:
            raise PassingBackendError("it is away")
        usual(names, grace_s)

    scheduler.cancel = cancel  # type: ignore[method-assign]
    found = probe_once(scheduler, "lab", agent, tmp_path / "home", NEEDS, 60.0)
    assert "head" in [each.topic for each in found]
    (probe,) = scheduler.probes
    assert scheduler.listed[probe.name].gone is Gone.CANCELLED
    assert (scheduler.cleared, scheduler.closed) == (1, 1)


@pytest.mark.parametrize(
    "said, text",
    [
        ("", "has ended without an answer: NonZeroExitCode"),
        (
            "bash: python9: not found",
            "without an answer: NonZeroExitCode: bash: python9: not found",
        ),
        ('{"too_old":[3,6,8],"executable":"/bin/p"}', "is Python 3.6.8 (/bin/p), and trials need"),
    ],
)
def test_an_end_without_an_answer_says_what_is_known(
    agent: AgentConfig, tmp_path: Path, said: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_module, "SOON_S", 0.0)
    scheduler = Machines()
    scheduler.runs = False
    scheduler.answer = lambda order: said  # type: ignore[method-assign]
    usual = scheduler.submit

    def submit(order: AllocationOrder) -> None:
        usual(order)
        scheduler.says(order.name, S.ENDED, gone=Gone.FAILED, reason="NonZeroExitCode")

    scheduler.submit = submit  # type: ignore[method-assign]
    (finding,) = probe_once(scheduler, "lab", agent, tmp_path / "home", NEEDS, 30.0)
    assert finding.severity is Severity.PROBLEM
    assert text in finding.text


# -- several nodes, and GPUs -------------------------------------------------------------------


def looked_over(
    agent: AgentConfig, folder: Path, *nodes: dict[str, str], needs: ProbeNeeds = NEEDS
) -> list[Finding]:
    """What is found of an allocation whose nodes have these variables."""
    scheduler = Machines()
    scheduler.runs = False
    many = replace(agent, nodes=max(1, len(nodes)))
    probe = probe_module.PlaceProbe("lab", many, folder, needs)
    assert probe.order.nodes == max(1, len(nodes))
    probe.lay()
    scheduler.submit(probe.order)
    scheduler.run(probe.order, *nodes)
    found = probe.look(scheduler.listed[probe.name], scheduler.answer(probe.order), 0.0)
    if found is None:
        listed = scheduler.listed[probe.name]
        found = probe.look(listed, scheduler.answer(probe.order), probe_module.LATE_S + 1)
    assert found is not None
    probe.close()
    assert not list(folder.glob("*.answer*"))
    return list(found)


def nodes_of(count: int) -> list[dict[str, str]]:
    names = "abcdefgh"[:count]
    return [{"BEQUEATH_RANK": str(n), "SLURMD_NODENAME": name} for n, name in enumerate(names)]


def test_each_node_of_an_allocation_is_looked_over(agent: AgentConfig, tmp_path: Path) -> None:
    """The second one has a broken module, and nobody else. Mutations: the first one speaks for all;
    the answer of one overwrites that of another; a finding does not say of which node it is."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "beside.py").write_text("raise ImportError('torn')")
    (tmp_path / "fine").mkdir()
    (tmp_path / "fine" / "beside.py").touch()
    needs = with_fields(NEEDS, host=HostNeeds(modules=("beside",)))
    nodes = nodes_of(3)
    for each, kind in zip(nodes, ("fine", "broken", "fine"), strict=True):
        each["PYTHONPATH"] = str(tmp_path / kind)
    found = looked_over(agent, tmp_path, *nodes, needs=needs)
    (problem,) = [each for each in found if each.severity is Severity.PROBLEM]
    assert problem.text.startswith("on b: ")
    assert "has no beside (ImportError: torn)" in problem.text
    heads = [each.text for each in found if each.topic == "head"]
    assert heads == ["an agent there reaches the head: directly"], "once, of all"


def test_a_node_that_does_not_answer_is_a_problem(agent: AgentConfig, tmp_path: Path) -> None:
    """Mutation: who has answered is all there is."""
    nodes = nodes_of(2)
    nodes[1]["BEQUEATH_RANK"] = "0"  # nobody is the second one
    found = looked_over(agent, tmp_path, *nodes)
    (problem,) = [each for each in found if each.severity is Severity.PROBLEM]
    assert "1 of 2 nodes" in problem.text


def test_a_node_with_a_file_of_its_own_answers_there(agent: AgentConfig, tmp_path: Path) -> None:
    """Pods whose end Kubernetes keeps in a file, and not what they print. None waits for another,
    and none fails. Mutation: the file of a rank is another one, which nobody has made."""
    given = probe_module.PlaceProbe("lab", replace(agent, nodes=2), tmp_path / "e", NEEDS).order
    own = tmp_path / "termination-log"
    own.touch()
    assert given.config.probe is not None
    asked = replace(given.config.probe, answer=str(own))
    path = tmp_path / "config"
    path.write_bytes(encode_config(replace(given.config, probe=asked)))
    ran = subprocess.run(
        [sys.executable, *given.arguments, str(path)],
        env={**os.environ, "BEQUEATH_RANK": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "")
    assert '"head":""' in own.read_text()


def test_nodes_that_print_wait_for_one_another(agent: AgentConfig, tmp_path: Path) -> None:
    """A container that ends badly, so that what it has printed is kept, ends those beside it.
    Mutation: the first one does not wait for the second."""
    order = probe_module.PlaceProbe("lab", replace(agent, nodes=2), tmp_path, NEEDS).order
    path = tmp_path / "config"
    path.write_bytes(encode_config(order.config))
    command = [sys.executable, *order.arguments, str(path)]

    def begin(number: int) -> subprocess.Popen[str]:
        name = {**os.environ, "JOB_COMPLETION_INDEX": str(number)}
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=name)

    first = begin(0)
    with pytest.raises(subprocess.TimeoutExpired):
        first.wait(3.0)
    second = begin(1)
    for each in (first, second):
        assert '"head":""' in each.communicate(timeout=60)[0]
        assert each.returncode == program.PRINTED


def test_gpus_of_each_node_are_counted_against_the_file(agent: AgentConfig, tmp_path: Path) -> None:
    """By a driver that is none. Mutations: GPUs are not looked at; those of the first node count
    for all; those that the scheduler hides are counted; a place that lacks what was asked for is
    not named."""
    (tmp_path / "driver").mkdir()
    driver = FakeDriver(tmp_path / "driver")
    driver.show(Gpu("GPU-0", "A1", total=8192), Gpu("GPU-1", "A1", total=8192))
    nodes = nodes_of(2)
    for each in nodes:
        each |= driver.environment
    nodes[1]["CUDA_VISIBLE_DEVICES"] = "1"
    needs = with_fields(NEEDS, host=HostNeeds(gpus=2.0))
    found = looked_over(agent, tmp_path, *nodes, needs=needs)
    gpus = [each for each in found if each.topic == "gpus"]
    assert [(each.severity, each.text) for each in gpus] == [
        (Severity.OK, "2 × A1 (8.0 GiB)"),
        (Severity.PROBLEM, "on b: 1 × A1 (8.0 GiB)"),
    ]
    assert "each trial needs 2" in gpus[1].hint
    needs = with_fields(NEEDS, gpus_asked=2.0)
    found = looked_over(agent, tmp_path, *nodes, needs=needs)
    (note,) = [each for each in found if each.severity is Severity.NOTE and each.topic == "gpus"]
    assert note.text == "on b: 1 × A1 (8.0 GiB), and the file asks for 2 in a place"
    bare = nodes_of(1)[0]
    (none,) = [each for each in looked_over(agent, tmp_path, bare) if each.topic == "gpus"]
    assert (none.severity, none.text[:4]) == (Severity.OK, "none")


@pytest.mark.parametrize(
    "setting, count",
    [
        (None, 3),
        ("2,0", 2),
        ("", 0),
        ("-1", 0),
        ("NoDevFiles", 0),
        ("1,-1,2", 1),
        ("0,0", 1),
        ("0,7,1", 1),
        ("²", 0),
        ("GPU-0,GPU-1", 3),
        ("MIG-0", 3),
    ],
)
def test_gpus_are_counted_as_agents_count_them(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, count: int
) -> None:
    """All GPUs may be hidden. Mutations: a word that names no GPU shows all of them, and an agent
    sees none there; one that is named twice is two."""
    gpus = [{"name": f"A{number}", "memory": 1 << 30} for number in range(3)]
    found = {"gpus": gpus, "trouble": "", "pynvml": True}
    monkeypatch.setattr(program, "look_at_gpus", lambda arguments: found)
    assert len(program.shown_gpus(setting)["gpus"]) == count


def test_gpus_that_are_shown_keep_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that shows the last two of four. Mutation: ``gpuIndices`` counts those that are
    shown, and a place in which agents find their GPUs is refused, or one in which they do not is
    taken."""
    gpus = [{"name": "A1", "memory": 1 << 30} for _ in range(4)]
    found = {"gpus": gpus, "trouble": "", "pynvml": True}
    monkeypatch.setattr(program, "look_at_gpus", lambda arguments: found)
    facts = msgspec.convert(program.shown_gpus("3,2"), AllGpus)
    well = judge_gpus(facts, wanted=2.0, indices=(2, 3))
    assert (well.severity, well.text) == (Severity.OK, "2 × A1 (1.0 GiB)")
    bad = judge_gpus(facts, wanted=1.0, indices=(0, 3))
    assert (bad.severity, bad.hint) == (
        Severity.PROBLEM,
        "gpuIndices names 0; GPUs there are 3, 2",
    )


def test_the_answer_of_a_place_with_many_gpus_is_short(agent: AgentConfig, tmp_path: Path) -> None:
    """Mutation: sixteen names do not fit into what Kubernetes keeps."""
    gpu = {"name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "memory": 85_520_809_984}
    answer = {
        "missing": {f"module_{n}": "x" * 300 for n in range(4)},
        "versions": {},
        "head": "",
        "folder_trouble": "",
        "gpus": {"gpus": [gpu] * 16, "trouble": "", "pynvml": True},
    }
    line = program.short(answer)
    assert len(line) <= program.MOST_BYTES
    assert len(json.loads(line)["gpus"]["gpus"]) == 16


# -- what is found -----------------------------------------------------------------------------

FINE = Probed(
    version=(3, 11, 2),
    executable="/usr/bin/python3",
    folder="/work",
    folder_trouble="",
    missing={"msgspec": "", "zmq": "", "trial_runtime": ""},
    code=[],
    runtime=[],
    python=PythonFacts("cpython", "cpython-311", "x86_64", "glibc", (2, 36)),
    folders={"weights": FolderFacts("/mnt/w", there=True, writable=True, same=True)},
    free=1 << 40,
    cores=4,
)
OTHER = FolderFacts("/mnt/w", there=True, writable=True, same=False)
COPIES = FolderFacts("/mnt/w", there=True, writable=True, same=True, renames="copies a file")


@pytest.mark.parametrize(
    "change, topic, text",
    [
        ({"head": "timed out"}, "head", "does not reach the head: timed out"),
        ({"lacks_code": "/code"}, "code", "the trials' code is not there: /code"),
        ({"folders": {"weights": FolderFacts("/mnt/w", there=False)}}, "weights", "is not there"),
        ({"folders": {"weights": OTHER}}, "weights", "is another folder"),
        ({"folders": {"weights": COPIES}}, "weights", "copies a file: a child could see half"),
        ({"folder_trouble": "/work: Read-only file system"}, "disk", "Read-only file system"),
        ({"free": 1000}, "disk", "no room"),
        ({"version": (3, 8, 1)}, "python", "is Python 3.8.1"),
        ({"missing": {"zmq": "ModuleNotFoundError: No module named 'zmq'"}}, "modules", "no zmq"),
        ({"missing": {"trial_runtime": "gone"}}, "modules", "no trial_runtime"),
    ],
)
def test_each_trouble_is_one_sentence_with_its_key(
    change: dict[str, Any], topic: str, text: str
) -> None:
    needs = ProbeNeeds()
    fine = list(findings_of_place(FINE, needs, "tcp://head:1", marked=True))
    assert not [each for each in fine if each.severity is Severity.PROBLEM]
    found = list(findings_of_place(replace(FINE, **change), needs, "tcp://head:1", marked=True))
    (problem,) = [each for each in found if each.severity is Severity.PROBLEM]
    assert (problem.topic, text in problem.text) == (topic, True), problem
    assert probe_module.KEYS[topic]


def test_what_is_too_large_to_be_brought_must_be_there(tmp_path: Path) -> None:
    """Mutation: it is taken for one that will be."""

    def fetch(wheels: Sequence[Wheel], host: HostPython, folder: Path) -> None:
        raise PipFailed("no way out")

    absent = {"numpy": "ModuleNotFoundError: No module named 'numpy'"}
    host = HostNeeds(wheels=WheelCache(tmp_path, fetch=fetch))
    needs = ProbeNeeds(host, brings_code=True, brings_modules=True, too_large=("numpy",))
    found = findings_of_place(replace(FINE, missing=absent), needs, "", marked=True)
    (problem,) = [each for each in found if each.severity is Severity.PROBLEM]
    assert "has no numpy, too large to be brought" in problem.text


# -- the program -------------------------------------------------------------------------------


def test_where_no_weights_are_seen_none_are_looked_for(agent: AgentConfig, tmp_path: Path) -> None:
    """Pods with nothing in common with this machine run trials that save none. Mutations: the start
    ends, since its root is not there; nobody hears that others cannot run."""
    config = replace(agent, weights_root="/nowhere/at/all", no_weights="pods see none: name one")
    found = looked_over(config, tmp_path)
    assert not [each for each in found if each.severity is Severity.PROBLEM], found
    (weights,) = [each for each in found if each.topic == "weights"]
    assert weights.severity is Severity.NOTE
    assert weights.text == "trials that save weights, or restore them, cannot run there"
    assert weights.hint == "pods see none: name one"


def test_of_a_store_it_is_looked_whether_somebody_answers(
    agent: AgentConfig, door: int, tmp_path: Path
) -> None:
    """Mutation: weights are looked for in a folder that the agent will make."""
    store = RemoteRoot("s3://bucket", {"endpoint_url": f"http://127.0.0.1:{door}"})
    found = looked_over(replace(agent, remote=store, weights_root="/nowhere"), tmp_path)
    (weights,) = [each for each in found if each.topic == "weights"]
    assert (weights.severity, weights.text) == (
        Severity.OK,
        f"the store at 127.0.0.1:{door} is reached",
    )
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        closed = nobody.getsockname()[1]
        store = RemoteRoot("s3://bucket", {"endpoint_url": f"http://127.0.0.1:{closed}"})
        found = looked_over(replace(agent, remote=store, weights_root="/nowhere"), tmp_path)
    (weights,) = [each for each in found if each.topic == "weights"]
    assert weights.severity is Severity.NOTE
    assert "is not reached: Connection refused" in weights.text


@pytest.mark.parametrize(
    "url, options, place",
    [
        ("sftp://me@127.0.0.1/x", {}, "127.0.0.1:22"),
        ("sftp://127.0.0.1:2222/x", {}, "127.0.0.1:2222"),
        ("sftp://127.0.0.1/x", {"port": 2200}, "127.0.0.1:2200"),
        ("s3://b", {"client_kwargs": {"endpoint_url": "https://127.0.0.1"}}, "127.0.0.1:443"),
        ("s3://bucket/x", {}, ""),
        ("s3://bucket/x", {"endpoint_url": "env:STORE"}, ""),
        ("s3://bucket/x", {"endpoint_url": "http://127.0.0.1:nonsense"}, ""),
        ("s3://bucket/x", {"client_kwargs": "nonsense"}, ""),
        ("gs://bucket", {"port": 1}, ""),
    ],
)
def test_where_a_store_is(
    url: str, options: dict[str, Any], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a reference is taken for a name, or the bucket for a host."""
    monkeypatch.setattr(socket, "create_connection", lambda *_: socket.socket())
    assert program.store_of({"url": url, "options": options}).get("store", "") == place
    assert program.store_of(None) == {}


def test_an_answer_that_is_printed_fits_what_a_scheduler_keeps(
    agent: AgentConfig, tmp_path: Path
) -> None:
    """Kubernetes keeps the last 2,048 bytes. Mutation: texts of any length."""
    scheduler = Machines()
    modules = tuple(f"module_that_is_nowhere_{number}" for number in range(12))
    needs = with_fields(NEEDS, host=HostNeeds(modules=modules))
    probe = probe_module.PlaceProbe("lab", agent, tmp_path, needs)
    assert probe.order.config.probe is not None
    scheduler.run(probe.order)  # nobody has made the file for its answer
    assert scheduler.listed[probe.name].gone is Gone.FAILED
    line = scheduler.printed[probe.name]
    assert len(line) < 2048
    found = probe.look(scheduler.listed[probe.name], line, 0.0)
    assert found is not None
    assert "an agent there reaches the head: directly" in [each.text for each in found]
    assert json.loads(line)["missing"][modules[0]]
    probe.close()


def test_why_the_head_is_not_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "REACH_S", 0.0)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        assert program.unreachable({"address": address}) == "Connection refused"
    assert "not known" in program.unreachable({"address": "tcp://no.such.host.invalid:1"})


def test_somebody_else_at_the_heads_address_is_told_apart(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def speak() -> None:
            with listening.accept()[0] as line:
                line.sendall(b"SSH-2.0-other\r\n")

        speaking = threading.Thread(target=speak)
        speaking.start()
        assert program.silent(f"127.0.0.1:{port}") == "something else than a head listens there"
        speaking.join()
    assert "has begun its line" in program.unreachable({"address": f"folder://{tmp_path}"})
    (tmp_path / "down.bell").touch()
    assert program.unreachable({"address": f"folder://{tmp_path}"}) == ""


@pytest.mark.parametrize("line", ["[" * 9000, '{"x":' + "[" * 9000, '{"x":' * 9000, "9" * 9000])
def test_what_its_log_ends_with_may_be_anything(tmp_path: Path, line: str) -> None:
    """Mutation: the service's thread dies of what is nested too deep, at each of its turns."""
    config = replace(CONFIG, weights_root=str(tmp_path))
    probe = probe_module.PlaceProbe("l", config, tmp_path, NEEDS)
    assert probe.look(None, line, 0.0) is None
    (finding,) = probe.look(None, line, probe_module.LATE_S) or ()
    assert "has ended without an answer" in finding.text
