"""A guest that answers probes of ``nfs verify`` by way of files, as trials' user, within 0.1 s.

The real ways of asking (a program for each request over SSH, or a process of this machine)
have tests of their own; starting Python in a guest takes more than a second.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nfs_setup.verify import PeerLost
from tests.support.processes import wait_until
from tests.system.nfs.rig import Machine

_NUMBERS = itertools.count()

#: In the guest: each ``N.ask`` of a folder, in their order, becomes ``N.said``.
_PROGRAM = """
import itertools, json, os, sys, time
from nfs_setup.verify.probes import answer
os.chdir(sys.argv[1])
for n in itertools.count():
    while f"{n}.ask" not in os.listdir("."):
        time.sleep(0.02)
    with open(f"{n}.ask") as file:
        request = json.load(file)
    if request is None:
        break
    with open(f"{n}.new", "w") as file:
        json.dump(answer(request), file)
    os.rename(f"{n}.new", f"{n}.said")
"""


class AnsweringGuest:
    """A :class:`~nfs_setup.verify.peers.Peer`: a program in a guest, from here on until closed."""

    def __init__(self, machine: Machine) -> None:
        self.name = machine.name
        name = f"verify{next(_NUMBERS)}"
        self._folder = machine.orders / name
        self._folder.mkdir()
        self._folder.chmod(0o777)
        program = machine.python_argv(_PROGRAM, f"/run/orders/{name}")
        self._running = machine.start(*machine.user_argv(*program))
        self.asked_at: dict[str, float] = {}
        self._asked = itertools.count()

    def ask(self, request: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
        """Wait for its answer; what the machine says if its program died."""
        self.asked_at[str(request["do"])] = time.monotonic()
        said = self._put(request).with_suffix(".said")
        last = time.monotonic() + limit_s + 60

        def is_there() -> bool:
            if not said.exists() and not self._running.alive():
                raise AssertionError(f"{self.name}: {self._running.said()}")
            if not said.exists() and time.monotonic() > last:
                raise PeerLost(f"no answer in {limit_s:.0f} s", where=self.name)
            return said.exists()

        wait_until(is_there, f"{self.name} answers", limit_s + 600)
        found: dict[str, Any] = json.loads(said.read_text())
        return found

    def close(self) -> None:
        """Its program ends."""
        self._put(None)
        self._running.wait(280)

    def _put(self, request: Mapping[str, Any] | None) -> Path:
        path = self._folder / f"{next(self._asked)}.ask"
        new = path.with_suffix(".part")
        new.write_text(json.dumps(request))
        new.rename(path)
        return path
