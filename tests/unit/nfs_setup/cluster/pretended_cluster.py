"""Machines that are logged in to without a network: each a pretended host with its own folder."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dispatcher.cli.nfs.login import setup_program
from nfs_setup.cluster.inventory import inventory_of
from nfs_setup.cluster.members import Inventory, Member, Remote, Unreachable
from nfs_setup.cluster.reading import KeyPath
from nfs_setup.errors import SetupError
from nfs_setup.host import Ran
from nfs_setup.request import request_of
from nfs_setup.verbs import perform
from tests.unit.nfs_setup.pretended import Pretended

#: What the command line sends.
PROGRAM = setup_program()


def places(path: KeyPath, key: bool) -> str:
    return "inventory.yml:" + ".".join(map(str, path))


def inventory(*clients: str) -> Inventory:
    """``nas`` and its clients."""
    values = {
        "share": {"folder": "/srv/w", "owner": "1000", "sharesItsFileSystem": True},
        "mount": {"point": "/mnt/w"},
        "server": "nas",
        "clients": list(clients or ("one", "two")),
    }
    return inventory_of(values, places)


class Cluster:
    """All machines by name, made when somebody first logs in.

    Attributes:
        away: nobody can log in there.
        users: who logs in there is this number, and not root.
        sudo: what sudo answers to those; 0 lets them.
        pythons: the version that is there, or None.
        order: who was asked for which verb, in the order of the answers.
        before: called in the thread of a host before it is asked.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts: dict[str, Pretended] = {}
        self.names: dict[str, str] = {}
        self.away: set[str] = set()
        self.users: dict[str, int] = {}
        self.sudo = Ran(1, "", "sudo: a password is required\n")
        self.pythons: dict[str, tuple[int, int] | None] = {}
        self.order: list[tuple[str, str]] = []
        self.before: Callable[[str], None] = lambda name: None
        self.lock = threading.Lock()

    def host(self, name: str) -> Pretended:
        with self.lock:
            if name not in self.hosts:
                self.hosts[name] = Pretended(self.folder / name)
            return self.hosts[name]

    @contextlib.contextmanager
    def connect(self, member: Member) -> Iterator[Remote]:
        name = member.login.host
        if name in self.away:
            raise Unreachable("nothing answers at port 22", hint="is it on?")
        yield _Login(self, name)


class _Login:
    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name

    def run(self, argv: Sequence[str], *, stdin: bytes, limit_s: float) -> Ran:
        words = list(argv)
        user = self.cluster.users.get(self.name, 0)
        if words[0] == "sudo":
            assert words[:3] == ["sudo", "-n", "--"], "sudo never asks"
            if self.cluster.sudo.code:
                return self.cluster.sudo
            user, words = 0, words[3:]
        version = self.cluster.pythons.get(self.name, (3, 9))
        if version is None:
            return Ran(127, "", f"sh: 1: {words[0]}: not found\n")
        if words != list(PROGRAM.command(words[0])):
            identity = self.cluster.names.get(self.name, self.name)
            line = f"bequeath {version[0]} {version[1]} {user} boot-{identity} {identity}\n"
            return Ran(0, f"Welcome!\n{line}", "")
        self.cluster.before(self.name)
        assert stdin.startswith(PROGRAM.code)
        document = json.loads(stdin[len(PROGRAM.code) :])
        host = self.cluster.host(self.name)
        host.root = user == 0
        try:
            answer = perform(host, request_of(document)).plain()
        except SetupError as error:
            answer = {"error": {"kind": type(error).__name__, **vars(error)}}
        with self.cluster.lock:
            self.cluster.order.append((self.name, document["verb"]))
        return Ran(int("error" in answer), f"Welcome!\n{json.dumps(answer)}\n", "")
