"""Another version is installed while an agent of 0.1.0 runs: it and its trials go on.

``trial_runtime-0.1.0.tar.xz`` is that version's package, without ``morphism``. Its processes import
much late, by names that have moved since, and start others by ``-c`` strings and by paths.
"""

from __future__ import annotations

import ast
import fcntl
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agent.fake_head import LOCAL, FakeHead
from tests.support.processes import wait_until
from trial_runtime import facts
from trial_runtime.agent.config import CacheSpec
from trial_runtime.facts import EndReason
from trial_runtime.weights import published_digest, verify
from trial_runtime.weights.remote.address import RemoteRoot

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

#: What is imported when an agent is made, and never after that.
BY_THE_START = {
    ("agent.attempts", "RemoteOffers"),
    ("agent.attempts", "NniMetrics"),
    ("agent.environment", "nni_trial"),
    ("agent.forked", "nni_trial"),  # which the environment of trials has imported
    ("agent.fresh", "nni_trial"),
    ("agent.warm", "nni_trial"),
    ("agent.remote_weights", "WeightsCache"),
    ("agent.remote_weights", "default_folder"),
}

#: What a head and a tuner host of 0.1.0 import late from this package, and from which module.
BY_A_HEAD = [
    ("trial_runtime.weights.faults", "named_faults"),
    ("trial_runtime.weights.leftovers", "sweep_leftovers"),
    ("trial_runtime.weights.usage", "file_use"),
    ("trial_runtime.weights.usage", "in_doubt"),
    ("trial_runtime.weights.usage", "plan_removal"),
    ("trial_runtime.weights.usage", "remove"),
    ("trial_runtime.weights.paths", "as_declared"),
    ("trial_runtime.weights.paths", "resolve_in_root"),
]

TRIAL = """
import fcntl
import numpy as np
import trial_runtime as t

def main(parameters):
    state = t.load_weights() if parameters.get("restore_path") else {"w": np.zeros(64)}
    t.report_intermediate(0.25)
    print("loaded", flush=True)
    with open(GO) as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # until the test lets go of it
    state["w"] = state["w"] + 1
    t.save_weights(state)
    t.report_intermediate(0.5)
    return float(state["w"][0])
"""


class Installed:
    """A folder of packages, in which another version takes the place of 0.1.0."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        with tarfile.open(HERE / "trial_runtime-0.1.0.tar.xz") as archive:
            archive.extractall(folder, filter="data")

    def replace(self) -> None:
        package = self.folder / "trial_runtime"
        package.rename(self.folder / "uninstalled")
        package.symlink_to(ROOT / "trial_runtime")


class HeadOfAnOldAgent(FakeHead):
    """Its agent, and all that this starts, have our package from a folder of the test's."""

    def __init__(self, folder: Path, installed: Installed, **changes: Any) -> None:
        self.agent_folder = installed.folder
        self.agent_environment = {**os.environ, "PYTHONPATH": str(installed.folder)}
        super().__init__(folder, **changes)


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path / "site")


@pytest.fixture
def head_with(installed: Installed) -> Iterator[Callable[..., FakeHead]]:
    heads: list[FakeHead] = []
    with tempfile.TemporaryDirectory(prefix="bq-") as folder:  # sockets need a short one

        def make(**changes: Any) -> FakeHead:
            heads.append(HeadOfAnOldAgent(Path(folder).resolve(), installed, **changes))
            heads[0].launch()
            heads[0].until(lambda: heads[0].hellos, "hello")
            return heads[0]

        try:
            yield make
        finally:
            for head in heads:
                head.close()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, for which trials wait."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _start(head: FakeHead, trial: int) -> None:
    """Start a trial that inherits from the one before, if there is one."""
    of: dict[str, Any] = {"save_path": str(trial)}
    if trial > 1:
        weights = head.of(facts.WeightsPublished, trial - 1)[-1].weights
        of["restore_path"], of["restore_kind"] = str(trial - 1), weights.kind
        of["restore_digest"] = weights.digest
    head.start(trial, parameters=of, **of)


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_an_agent_that_runs_on_starts_and_ends_trials(
    head_with: Callable[..., FakeHead], installed: Installed, tmp_path: Path, reuse: str
) -> None:
    """Trial 2 has loaded its parent's weights when its package is replaced, and saves by another
    version; trials 3 and 4 are started after that."""
    go = tmp_path / "go"
    go.touch()
    head = head_with(function="train:main", reuse=reuse, slots=1)
    head.script(TRIAL.replace("GO", repr(str(go))))
    _start(head, 1)
    assert head.end_of(1).reason == EndReason.FINISHED, head.log()
    with locked(go):
        _start(head, 2)
        head.until(lambda: "loaded" in head.output(2), "the weights of its parent")
        installed.replace()
    for trial in (3, 4):
        end = head.end_of(trial - 1)
        assert end.reason == EndReason.FINISHED, (end, head.log())
        _start(head, trial)
    assert head.end_of(4).reason == EndReason.FINISHED, head.log()
    assert [head.finals(trial) for trial in (1, 2, 3, 4)] == [[1.0], [2.0], [3.0], [4.0]]
    assert head.metrics(4) == [0.25, 0.5]
    newest = head.of(facts.WeightsPublished, 4)[-1].weights
    assert verify(str(head.weights / "4"), newest.digest).tensors == 1


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_workers_and_fork_servers_of_this_version_serve_an_older_agent(
    head_with: Callable[..., FakeHead], installed: Installed, tmp_path: Path, reuse: str
) -> None:
    """Nothing had been started when its package was replaced."""
    go = tmp_path / "go"
    go.touch()
    head = head_with(function="train:main", reuse=reuse, slots=1)
    head.script(TRIAL.replace("GO", repr(str(go))))
    installed.replace()
    for trial in (1, 2):
        _start(head, trial)
        assert head.end_of(trial).reason == EndReason.FINISHED, head.log()
    assert head.finals(2) == [2.0]


def test_weights_on_no_folder_are_fetched_by_an_older_agent(
    head_with: Callable[..., FakeHead], installed: Installed, tmp_path: Path
) -> None:
    """It fetches a parent for the first time, and has a module in memory where a room is now."""
    go = tmp_path / "go"
    go.touch()
    head = head_with(
        function="train:main",
        slots=1,
        remote=RemoteRoot(f"file://{tmp_path}/remote", {}, "lab"),
        cache=CacheSpec(1 << 20, str(tmp_path / "cache")),
    )
    head.script(TRIAL.replace("GO", repr(str(go))))
    for trial in (1, 2, 3):
        _start(head, trial)
        end = head.end_of(trial)
        assert end.reason == EndReason.FINISHED, (end, head.log())
        if trial == 1:
            installed.replace()
    assert head.finals(3) == [3.0]


def test_weights_that_a_command_leaves_are_digested(
    head_with: Callable[..., FakeHead], installed: Installed, tmp_path: Path
) -> None:
    """The agent looks for them at a trial's end only. So does it with files that a trial began
    before, and with the parent's of one that starts later."""
    go = tmp_path / "go"
    head = head_with(
        command=f"until [ -e {go} ]; do sleep 0.02; done; mkdir -p $BEQUEATH_WEIGHTS_ROOT/$SAVE;"
        " echo weights > $BEQUEATH_WEIGHTS_ROOT/$SAVE/model.pt",
        environment={"SAVE": "1"},
    )
    head.start(1, save_path="1", parameters={"save_path": "1"})
    head.until(lambda: head.of(facts.AttemptStarted, 1), "its start")
    installed.replace()
    go.touch()
    end = head.end_of(1)
    assert end.reason == EndReason.FINISHED, (end, head.log())
    there = published_digest(str(head.weights / "1"))
    assert there is not None
    assert end.weights == facts.Weights(there.digest, "files", there.nbytes)
    of = {"restore_path": "1", "restore_digest": there.digest, "restore_kind": "files"}
    assert head.run(2, **of).reason == EndReason.FINISHED, head.log()


def test_trials_of_nni_find_it(
    head_with: Callable[..., FakeHead], installed: Installed, tmp_path: Path
) -> None:
    """One had imported it before, one does so after its folder has moved."""
    go = tmp_path / "go"
    head = head_with(command=f"{sys.executable} train.py", nni=True)
    head.script(
        "import fcntl, nni\n"
        "print('imported', flush=True)\n"
        f"fcntl.flock(open({str(go)!r}), fcntl.LOCK_SH)\n"
        "nni.report_intermediate_result(0.5)\n"
        "nni.report_final_result(nni.get_next_parameter()['x'])\n"
    )
    with locked(go):
        head.start(1, parameters={"x": 1.5})
        head.until(lambda: "imported" in head.output(1), "nni")
        installed.replace()
    for trial in (1, 2):
        end = head.end_of(1) if trial == 1 else head.run(2, parameters={"x": 2.5})
        assert end.reason == EndReason.FINISHED, (head.output(trial, stream="stderr"), head.log())
        assert head.finals(trial) == [trial + 0.5]
        assert head.metrics(trial) == [0.5]


def test_a_reader_that_is_in_memory_goes_without_a_cache(
    installed: Installed, tmp_path: Path
) -> None:
    """It would ask ours for a view of a tensor, which caches do not give any more."""
    program = (
        "import os, sys\n"
        "import numpy as np\n"
        "from trial_runtime import weights\n"
        "one = weights.save({'w': np.ones(3)}, sys.argv[1])\n"
        "assert weights.load(sys.argv[1], digest=one.digest)['w'].sum() == 3\n"
        "assert 'trial_runtime.weights.cache_place' not in sys.modules\n"
        "print('loaded', flush=True)\n"
        "sys.stdin.readline()\n"
        "os.environ['BEQUEATH_WEIGHTS_CACHE'] = f'always:1000000:{sys.argv[2]}'\n"
        "print(weights.load(sys.argv[1], digest=one.digest)['w'].sum())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "weights"), str(tmp_path / "cache")],
        cwd=installed.folder,
        env={**os.environ, "PYTHONPATH": str(installed.folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loaded\n"
        installed.replace()
        answer, _ = process.communicate("go\n")
    assert answer == "3.0\n"


@pytest.mark.skipif(sys.platform != "linux", reason="wardens are there on Linux")
def test_the_warden_of_an_agent_that_runs_on_is_followed_by_another(
    head_with: Callable[..., FakeHead], installed: Installed
) -> None:
    head = head_with(command="true")
    process = head.process
    assert process is not None

    def warden() -> int:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if b"warden.py" in line and int(parent) == process.pid:
                return int(pid)
        return 0

    first = int(wait_until(warden, "the first warden") or warden())
    installed.replace()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: warden() not in (0, first), "the next warden")
    assert head.run(1).reason == EndReason.FINISHED
    second = warden()
    assert second not in (0, first), "it ended at once, and yet another one follows"


def _late(package: Path) -> list[tuple[str, str, str]]:
    """What modules of the agent and of trials import within functions: by which, module, name."""
    late = []
    for path in sorted(package.rglob("*.py")):
        by = ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__")
        if by.startswith("nni_shim.nni"):
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trial_"):
                    late += [(by, node.module or "", alias.name) for alias in node.names]
    return late


@pytest.mark.parametrize(
    "before",
    [
        "agent.agent, agent.attending, checkpoints, stores, weights, nni_shim.nni",
        "agent.agent, weights.cache, weights.cache_place, weights.remote.place",
        "api, weights.loading",
        "api, weights.saving",
        "api, weights.loading, weights.cache_place, weights.cached_files",
        "api, weights.reading, weights.exporting, weights.verifying",
        "agent.zygote, agent.worker",
    ],
)
def test_what_older_processes_import_late_is_there(installed: Installed, before: str) -> None:
    """In a process of that version, whose own modules are in memory: what stands at the old names
    must get along with them. Mutation: one of the names goes."""
    package = installed.folder / "trial_runtime"
    late = [(by, m, n) for by, m, n in _late(package) if (by, n) not in BY_THE_START]
    assert len(late) > 40
    homes = ast.parse((package / "weights" / "__init__.py").read_text())
    (table,) = (
        ast.literal_eval(node.value)
        for node in homes.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES"
    )
    late += [("weights", f"trial_runtime.weights.{home}", name) for name, home in table.items()]
    late += [("weights", *each) for each in BY_A_HEAD]
    program = (
        "import importlib, os, sys\n"
        f"for name in {before.split(', ')!r}:\n"
        "    importlib.import_module(f'trial_runtime.{name}')\n"
        "print('loaded', flush=True)\n"
        "sys.stdin.readline()\n"
        "importlib.invalidate_caches()\n"
        "wanted = {}\n"
        f"for by, module, name in {sorted(set(late))!r}:\n"
        "    if f'trial_runtime.{by}' in sys.modules:\n"
        "        wanted.setdefault(module, []).append(name)\n"
        "for module, names in wanted.items():\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        try:\n"
        "            exec(f'from {module} import ' + ', '.join(names))\n"
        "        except ImportError as error:\n"
        "            print(module, names, error, flush=True)\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=installed.folder,
        env={**os.environ, "PYTHONPATH": str(installed.folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loaded\n"
        installed.replace()
        missing, _ = process.communicate("go\n")
    assert missing == ""


def test_an_agent_of_0_1_0_hands_over_when_its_place_ends(
    head_with: Callable[..., FakeHead],
) -> None:
    """Its version has the reason on its wire, and no head of then ever ordered it."""
    head = head_with(command="sleep 600", stop_grace_s=0.5)
    head.start(1)
    head.until(lambda: head.of(facts.AttemptStarted, 1), "it runs")
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.PREEMPTED, 0.5))
    assert head.end_of(1).reason is EndReason.PREEMPTED
    head.until(lambda: head.heartbeats, "it lives on")
    assert not head.heartbeats[-1].leaving
