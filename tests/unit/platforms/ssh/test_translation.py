"""What an agent elsewhere is told, and which machines are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from dispatcher.platforms.ssh.machine import Machine
from dispatcher.platforms.ssh.provisioning import Fitted, ModuleFolders
from dispatcher.platforms.ssh.translation import translate
from dispatcher.platforms.ssh.visit import way_back
from dispatcher.ssh import SshTarget
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.agent.link.path_mapping import PathMapping
from trial_runtime.endpoint import Endpoint
from trial_runtime.weights.remote.address import RemoteRoot

FITTED = Fitted(
    "/home/dev/.bequeath", "/home/dev/.bequeath/runtime/r", "/home/dev/.bequeath/code/c"
)
CONFIG = AgentConfig(
    worker="h1",
    slots=2,
    head=Endpoint("tcp://127.0.0.1:5000", "agent:h1:secret", "server", "public", "private"),
    epoch=1,
    run_folder="/tmp/here",
    experiment_folder="/home/me/experiments/lab",
    experiment="lab",
    trial=TrialSpec("/home/me/code", command="true", environment={"A": "1", "KEY": "env:LAB_KEY"}),
    weights_root="/srv/weights",
)


def machine(**keys: object) -> Machine:
    return Machine("h1", lambda: SshTarget("h1"), **keys)  # type: ignore[arg-type]


def test_paths_and_the_way_to_the_head_are_that_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "geheim")
    there = machine(weights_root="/mnt/w", environment={"B": "2", "C": "env:LAB_KEY"})
    told = translate(CONFIG, there, FITTED, address="127.0.0.1:7000", token="t")
    config = told.config
    assert config.head == replace(CONFIG.head, address="tcp://127.0.0.1:7000")
    assert config.experiment_folder == "/home/dev/.bequeath/experiments/lab/h1"
    assert config.trial.code_directory == FITTED.code
    assert (config.weights_root, config.canonical_root) == ("/mnt/w", "/srv/weights")
    assert config.root_token == "t"
    assert config.runtime == FITTED.runtime, "or it might be removed"
    assert b"geheim" not in msgspec.json.encode(config), "it is written to that machine's disk"
    variables = {"A": "1", "KEY": "env:BEQUEATH_SECRET_KEY"}
    # By reference, so that the agent masks what it stands for in what it tells of trials.
    assert config.trial.environment == {**variables, "C": "env:C"}
    assert told.environment == {"B": "2", "C": "geheim", "BEQUEATH_SECRET_KEY": "geheim"}


def test_a_reference_that_leads_nowhere_is_named() -> None:
    with pytest.raises(LookupError, match="LAB_KEY"):
        translate(CONFIG, machine(), FITTED, address="127.0.0.1:1", token="")


def test_a_store_is_reached_with_secrets_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "geheim")
    monkeypatch.setenv("STORE_KEY", "s3cret")
    store = RemoteRoot("s3://lab/nas", {"client_kwargs": {"key": "env:STORE_KEY"}})
    told = translate(
        replace(CONFIG, remote=store), machine(), FITTED, address="127.0.0.1:1", token=""
    )
    assert told.config.remote == store
    assert told.config.weights_root.startswith(f"{FITTED.folder}/experiments/lab/h1/")
    assert told.environment["STORE_KEY"] == "s3cret"
    assert b"s3cret" not in msgspec.json.encode(told.config)


def test_views_of_a_store_are_this_workers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent removes what it finds there: two experiments may name one folder."""
    monkeypatch.setenv("LAB_KEY", "geheim")
    config = replace(CONFIG, remote=RemoteRoot("s3://lab/nas"))
    there = machine(weights_root="/scratch/w")
    found = [
        translate(each, there, FITTED, address="127.0.0.1:1", token="").config.weights_root
        for each in (config, replace(config, experiment="b"), replace(config, worker="h2"))
    ]
    assert len(set(found)) == 3
    assert all(path.startswith("/scratch/w/") for path in found)


@pytest.mark.parametrize("remote", [None, RemoteRoot("s3://lab/nas")])
def test_read_roots_may_be_elsewhere_there(
    monkeypatch: pytest.MonkeyPatch, remote: RemoteRoot | None
) -> None:
    monkeypatch.setenv("LAB_KEY", "geheim")
    config = replace(CONFIG, read_roots=("/srv/pre", "/srv/zoo"), remote=remote)
    there = machine(read_roots=("/data/pre", "/data/zoo"))
    told = translate(config, there, FITTED, address="127.0.0.1:1", token="").config
    assert told.read_roots == ("/data/pre", "/data/zoo")
    assert PathMapping(told).here("/srv/zoo/net") == "/data/zoo/net"
    same = translate(config, machine(), FITTED, address="127.0.0.1:1", token="").config
    assert same.read_roots == config.read_roots


def test_a_literal_on_a_machine_is_no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "geheim")
    there = machine(environment={"STORE": "literal:file:/data/runs"})
    told = translate(CONFIG, there, FITTED, address="127.0.0.1:1", token="")
    assert told.environment["STORE"] == "file:/data/runs"


def test_a_prolog_prepares_the_command_and_cannot_mix_with_its_answer() -> None:
    prolog = 'echo loaded "$0"; export FOUND="it is"; X=\'$(date)\''
    words = machine(python=sys.executable, prolog=prolog).command(
        "-c", "import os, sys; print(os.environ['FOUND'], sys.argv[1])", "$(id) ; \"'"
    )
    ran = subprocess.run(words, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert ran.stdout == "it is $(id) ; \"'\n"
    assert ran.stderr == "loaded bash\n"


def test_modules_that_were_brought_are_told_to_the_agent_and_named_for_who_tidies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAB_KEY", "geheim")
    there = "/home/dev/.bequeath/modules/cpython-39"
    fitted = FITTED._replace(modules=ModuleFolders((f"{there}/a", f"{there}/b"), (f"{there}/c",)))
    told = translate(CONFIG, machine(), fitted, address="127.0.0.1:1", token="")
    assert told.environment["BEQUEATH_MODULES"] == f"{there}/a:{there}/b"
    assert told.environment["BEQUEATH_MODULES_FIRST"] == f"{there}/c"
    assert told.config.modules == (f"{there}/a", f"{there}/b", f"{there}/c")
    assert not translate(CONFIG, machine(), FITTED, address="127.0.0.1:1", token="").config.modules


@pytest.mark.parametrize(
    "named, found",
    [
        ("", "127.0.0.1:7000"),
        ("10.1.2.3", "10.1.2.3:5000"),
        ("gate:7070", "gate:7070"),
        ("[fe80::1]", "[fe80::1]:5000"),
        ("[fe80::1]:7070", "[fe80::1]:7070"),
    ],
)
def test_the_way_back_is_a_tunnel_unless_an_address_is_named(named: str, found: str) -> None:
    """Mutation: a port that is named is not the one that is told."""

    class Connection:
        def reverse_forward(self, host: str, port: int) -> int:
            assert (host, port) == ("10.9.9.9", 5000)
            assert not named, "no tunnel is wanted"
            return 7000

        def reverse_forward_to_file(self, path: Path) -> int:
            pytest.fail("there is none")

    assert way_back(cast("Any", Connection()), ("10.9.9.9", 5000), named) == found


def test_a_tunnel_leads_to_a_socket_file_that_nobody_else_can_open() -> None:
    class Connection:
        def reverse_forward_to_file(self, path: Path) -> int:
            assert path == Path("/run/far")
            return 7000

    assert way_back(cast("Any", Connection()), Path("/run/far"), "") == "127.0.0.1:7000"
