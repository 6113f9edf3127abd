"""``bequeath nfs cluster`` over machines that are logged in to without a network."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from dispatcher.cli.json_shapes import SHAPES
from dispatcher.cli.nfs.inventory import read_inventory
from dispatcher.cli.nfs.login import OverSsh, logins
from dispatcher.cli.nfs.progress import MachineProgress
from dispatcher.errors import PassingBackendError
from nfs_setup.cluster import plan
from nfs_setup.cluster.members import Login, Member, Remote, Unreachable
from nfs_setup.cluster.plan import Outcome
from nfs_setup.cluster.run_plan import RunPlan
from nfs_setup.errors import RequestRefused
from nfs_setup.host import Ran
from nfs_setup.local_host import LocalHost
from tests.unit.cli.conftest import Shell
from tests.unit.nfs_setup.cluster.pretended_cluster import PROGRAM, Cluster, inventory

INVENTORY = """\
share:
  folder: /srv/w
  owner: "1000"
  sharesItsFileSystem: true
mount: {point: /mnt/w}
server: nas
clients: [one, two]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "inventory.yml"
    path.write_text(INVENTORY)
    return path


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster(tmp_path / "machines")
    monkeypatch.setattr("dispatcher.cli.nfs.login.logins", lambda *_: cluster.connect)
    return cluster


def test_set_up_again_and_back(bequeath: Shell, machines: Cluster, file: Path) -> None:
    plan = bequeath("nfs", "cluster", file, "--dry-run")
    assert plan.code == 0, plan
    assert "+/srv/w one(rw,sync" in plan.out
    assert "planned: mount nas:/srv/w on /mnt/w" in plan.out
    assert "hard: while the server is away" in plan.err
    assert plan.out.endswith("nothing was changed (--dry-run)\n")
    assert machines.host("nas").ran == []

    done = bequeath("nfs", "cluster", file)
    assert done.code == 0, done
    rows = [line.split() for line in done.out.splitlines()]
    assert ["nas", "server", "set", "up"] in [row[:4] for row in rows]
    assert ["two", "client", "set", "up"] in [row[:4] for row in rows]
    assert "one: set up: " in done.err, "told as it comes"
    again = bequeath("nfs", "cluster", file)
    assert again.out.endswith("nothing to change: everything is so already\n")

    stands = bequeath("nfs", "cluster", file, "--status")
    assert "exports /srv/w" in stands.out
    assert "mounts /mnt/w" in stands.out
    assert bequeath("nfs", "cluster", file, "--undo").code == 0
    undone = bequeath("nfs", "cluster", file, "--undo")
    assert undone.out.endswith("nothing to undo\n")


def test_who_failed_is_named_at_the_end_with_what_to_do(
    bequeath: Shell, machines: Cluster, file: Path
) -> None:
    machines.away = {"one"}
    machines.host("two").fail["mount"] = Ran(32, "", "mount.nfs4: access denied by server")
    said = bequeath("nfs", "cluster", file)
    assert said.code == 4
    assert "one: nothing answers at port 22\n  is it on?" in said.err
    assert "two: " in said.err
    assert said.err.endswith("2 errors\n")
    document = bequeath("nfs", "cluster", file, "--json")
    assert document.code == 4
    machines.away = {"nas"}
    said = bequeath("nfs", "cluster", file)
    assert "one   client  left out" in said.out
    assert "1 error" not in said.err, "those that were left out are no errors of their own"


def test_only_root_may_look_at_what_was_set_up(
    bequeath: Shell, machines: Cluster, file: Path
) -> None:
    machines.users = {"one": 1000}
    assert bequeath("nfs", "cluster", file, "--dry-run").code == 0
    for words in (("--undo", "--dry-run"), ("--status",)):
        said = bequeath("nfs", "cluster", file, *words)
        assert said.code == 4
        assert "one: is not root there, and sudo -n says" in said.err


def test_a_wrong_request_is_the_users_fault(bequeath: Shell, machines: Cluster, file: Path) -> None:
    file.write_text(INVENTORY.replace('  owner: "1000"\n', ""))
    said = bequeath("nfs", "cluster", file)
    assert said.code == 3
    assert "nas: folder '/srv/w': is not there, and nobody is named to own it" in said.err


@pytest.mark.parametrize(
    "old, new, text",
    [
        ("clients", "clinets", "inventory.yml:7:1: unknown key 'clinets'; did you mean 'clients'?"),
        ("owner", "ower", "inventory.yml:3:3: unknown key 'ower' in 'share'; did you mean 'owner'"),
        ("one", "nas", "inventory.yml:7:11: 'nas' is the server itself"),
        ("two", "one", "inventory.yml:7:16: 'one' is listed twice, first at"),
        ("server: nas", "server: [nas, b]", "inventory.yml:6:9: is a list; a share has one server"),
        ("server: nas", "server: nas\nserver: b", "inventory.yml:7:1: the key 'server' is given"),
        ("[one", "[one,\t\n\t", "inventory.yml"),
    ],
)
def test_a_wrong_inventory_is_refused_where_it_is_wrong(
    bequeath: Shell, machines: Cluster, file: Path, old: str, new: str, text: str
) -> None:
    file.write_text(INVENTORY.replace(old, new, 1))
    said = bequeath("nfs", "cluster", file)
    assert said.code == 3, said
    assert text in said.err
    assert machines.order == []


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read(bequeath: Shell, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other.yml"
    if content is not None:
        path.write_bytes(content)
    said = bequeath("nfs", "cluster", path)
    assert said.code == 3
    assert str(path) in said.err


def test_a_secret_that_is_not_there_is_missed_before_anything_begins(
    bequeath: Shell, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_SECRET", raising=False)
    file.write_text(INVENTORY + "ssh: {password: env:NO_SUCH_SECRET}\n")
    said = bequeath("nfs", "cluster", file)
    assert said.code == 3
    assert "'NO_SUCH_SECRET', which is not set here" in said.err
    file.write_text(INVENTORY + "ssh: {password: hunter2}\n")
    said = bequeath("nfs", "cluster", file)
    assert said.code == 3
    assert "write env:NAME or file:PATH" in said.err
    assert "hunter2" not in said.err + said.out


def test_without_paramiko_the_extra_is_named(
    bequeath: Shell, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = bequeath("nfs", "cluster", file)
    assert said.code == 4
    assert "pip install 'bequeath[ssh]'" in said.err


@pytest.mark.parametrize(
    "words",
    [
        ("--undo", "--status"),
        ("--undo", "--verify"),
        ("--status", "--dry-run"),
        ("--verify", "--dry-run"),
        ("--keep-packages",),
        ("--quick",),
    ],
)
def test_options_that_contradict_one_another(
    bequeath: Shell, machines: Cluster, file: Path, words: tuple[str, ...]
) -> None:
    assert bequeath("nfs", "cluster", file, *words).code == 2
    assert machines.order == []


def test_ssh_configuration_that_is_no_good_for_one_host_is_that_hosts_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not end the command, while others are under way."""
    pytest.importorskip("paramiko")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host one\n  ProxyCommand nc %h %p\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "inventory.yml"
    file.write_text(INVENTORY)
    found = read_inventory(file)
    log_in = logins(found, tmp_path)
    with pytest.raises(RequestRefused, match="ProxyCommand"), log_in(found.clients[0]):
        pass


def test_ctrl_c_is_an_end_in_order(bequeath: Shell, machines: Cluster, file: Path) -> None:
    def before(name: str) -> None:
        if name == "nas":
            signal.raise_signal(signal.SIGINT)

    machines.before = before
    said = bequeath("nfs", "cluster", file, "--at-once", 1)
    assert said.code == 130
    assert machines.order == [("nas", "server")], "what was begun is finished, nothing else begun"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_table_shows_each_host_as_it_comes(machines: Cluster) -> None:
    hosts = inventory("one", "two")
    progress = MachineProgress([(member.name, member.role) for member in hosts.members])
    machines.away = {"two"}
    shots: list[list[str]] = []

    def watch(outcome: Outcome) -> None:
        progress.tell(outcome)
        console = Console(width=100, file=io.StringIO())
        console.print(progress.picture())
        shots.append([" ".join(line.split()[:3]) for line in _lines(console)[1:]])

    RunPlan(machines.connect, PROGRAM, needs_root=True, at_once=1, watch=watch).carry_out(
        plan.set_up(hosts)
    )
    assert shots[0] == ["nas server looking", "one client waiting", "two client waiting"]
    assert [line.split()[2] for line in shots[-1]] == ["set", "set", "failed"]
    assert any(
        "nas server working" in shot[0] and "one client waiting" in shot[1] for shot in shots
    )


def _lines(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_json_is_as_documented(bequeath: Shell, machines: Cluster, file: Path) -> None:
    document = bequeath("nfs", "cluster", file, "--status", "--json").json()
    keys = SHAPES["nfs cluster"].partition("{")[2].partition("}")[0].split(", ")
    assert list(document) == keys
    assert list(document["hosts"][0]) == ["host", "role", "state", "seconds", "report", "error"]


def test_the_inventory_of_the_guide_is_one(tmp_path: Path) -> None:
    guide = Path(__file__).parents[3] / "docs" / "nfs-admin.md"
    (text,) = re.findall(r"```yaml\n(share:.*?)```", guide.read_text(), re.S)
    path = tmp_path / "inventory.yml"
    path.write_text(text)
    found = read_inventory(path)
    assert [client.name for client in found.clients] == ["trainer1", "trainer2", "trainer3:2222"]
    assert found.clients[2].login.user == "root"
    assert found.clients[0].login.user == "admin"


EXPERIMENT = """\
searchSpace: {x: {_type: uniform, _value: [0, 1]}}
trialCommand: "true"
trialConcurrency: 1
tuner: {name: Random}
trainingService:
  platform: ssh
  machineList:
    - {host: gpu1, user: trainer, port: 2222, password: env:SECRET, jump: me@gate:23}
    - host: gpu2
"""


def test_the_machines_of_an_experiment_may_be_the_clients(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "sesame")
    (tmp_path / "experiment.yml").write_text(EXPERIMENT)
    file.write_text(INVENTORY.replace("[one, two]", "experiment.yml"))
    one, two = read_inventory(file).clients
    assert one.name == "gpu1:2222"
    assert one.login == Login(
        "gpu1", 2222, "trainer", password="env:SECRET", jump=Login("gate", 23, "me")
    )
    assert two.login == Login("gpu2")


def test_an_experiment_without_machines_has_no_clients(
    bequeath: Shell, tmp_path: Path, file: Path
) -> None:
    text = EXPERIMENT.partition("trainingService")[0]
    (tmp_path / "experiment.yml").write_text(text)
    file.write_text(INVENTORY.replace("[one, two]", "experiment.yml"))
    said = bequeath("nfs", "cluster", file)
    assert said.code == 3
    assert "inventory.yml:7:10: experiment.yml names no machines" in said.err


def test_the_share_is_measured_from_all_clients(
    bequeath: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "w").mkdir()
    file = tmp_path / "inventory.yml"
    text = INVENTORY.replace('  owner: "1000"\n', "").replace("/mnt/w", str(tmp_path / "w"))
    file.write_text(text)
    monkeypatch.setattr("dispatcher.cli.nfs.login.logins", lambda *_: here_but_two_is_away)
    said = bequeath("nfs", "cluster", file, "--verify", "--quick", "--json")
    document = json.loads(said.out)
    assert document["unasked"] == [{"host": "two", "message": "is away", "hint": ""}]
    assert said.code != 0
    assert [machine["name"] for machine in document["facts"]["machines"]] == ["one"]
    assert document["facts"]["machines"][0]["begun"]["uid"] == os.getuid()
    assert os.listdir(tmp_path / "w") == [], "nothing is left there"


def test_a_client_that_is_lost_after_its_login_is_named_and_the_others_are_measured(
    bequeath: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "w").mkdir()
    file = tmp_path / "inventory.yml"
    text = INVENTORY.replace('  owner: "1000"\n', "").replace("/mnt/w", str(tmp_path / "w"))
    file.write_text(text)

    @contextlib.contextmanager
    def two_breaks(member: Member) -> Iterator[Remote]:
        yield OverSsh(Broken()) if member.name == "two" else LocalHost()  # type: ignore[arg-type]

    monkeypatch.setattr("dispatcher.cli.nfs.login.logins", lambda *_: two_breaks)
    said = bequeath("nfs", "cluster", file, "--verify", "--quick", "--json")
    document = json.loads(said.out)
    assert document["unasked"] == [{"host": "two", "message": "the line is cut", "hint": ""}]
    assert [machine["name"] for machine in document["facts"]["machines"]] == ["one"]
    assert os.listdir(tmp_path / "w") == [], "nothing is left there"


class Broken:
    """A connection that has ended by the time it is used."""

    def run(self, argv: Sequence[str], *, stdin: bytes, limit_s: float) -> object:
        raise PassingBackendError("the line is cut")


@contextlib.contextmanager
def here_but_two_is_away(member: Member) -> Iterator[Remote]:
    """Logs in at this machine, for what changes nothing."""
    if member.name == "two":
        raise Unreachable("is away")
    yield LocalHost()
