"""The rig does what other tests rely on: else they would show nothing."""

from __future__ import annotations

import pytest

from tests.system.nfs.conftest import Share
from tests.system.nfs.machine import DIED, Machine
from tests.system.nfs.rig import why_not

pytestmark = [
    pytest.mark.needs("nfs"),
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


def write(machine: Machine, file: str, text: str) -> tuple[str, ...]:
    """What writes a file durably, as the trials' user."""
    return machine.user_argv("sh", "-c", f"echo {text} >{file}; sync {file}")


def test_a_share_through_a_cut_wire_and_a_crash(share: Share) -> None:
    server, one, two = share.server, share.one, share.two
    file = f"{share.point}/file"
    assert one.run(*write(one, file, "first")).code == 0
    assert two.as_user("cat", file).out == "first\n"

    share.network.cut(one)
    writing = one.start(*write(one, file, "second"))
    assert two.as_user("cat", file).out == "first\n", "others go on"
    assert writing.alive()
    share.network.heal(one)
    assert writing.wait(120).code == 0
    assert server.run("cat", f"{share.folder}/file").out == "second\n"

    server.cut_power()
    writing = one.start(*write(one, file, "third"))
    lost = two.start("sleep", "1000")
    two.cut_power()
    assert lost.wait(10).code == DIED
    assert writing.alive()
    server.boot()
    two.boot()
    assert writing.wait(120).code == 0
    assert two.as_user("cat", file).out == "third\n", "server and client came back by themselves"


def test_late_and_lost_packets(share: Share) -> None:
    share.one.netem(delay_ms=20, loss_percent=1)
    shown = share.one.run("tc", "qdisc", "show", "dev", "eth0").out
    assert "netem" in shown
    assert "delay 20ms loss 1%" in shown
    share.one.netem_off()
    assert "netem" not in share.one.run("tc", "qdisc", "show", "dev", "eth0").out


def test_programs_of_this_checkout(share: Share) -> None:
    program = "import sys, os, msgspec; print(os.getuid(), *sys.argv[1:])"
    ran = share.two.run(*share.two.user_argv(*share.two.python_argv(program, "a b")))
    assert ran == (0, "1234 a b\n", "")
