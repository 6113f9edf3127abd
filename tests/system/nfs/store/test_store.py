"""The weight store keeps its promises over the kernel's NFS, between machines, as mounted by
``bequeath nfs`` with the attribute caches that Linux has by default."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.processes import wait_until
from tests.system.nfs.conftest import Share
from tests.system.nfs.machine import ROOT
from tests.system.nfs.rig import why_not
from tests.system.nfs.store.desk import Desk, Refused, desks, employ
from tests.system.nfs.store.exports import export, small_export, withdraw
from tests.system.nfs.store.handing_over import Line, Naive

pytestmark = [
    pytest.mark.needs("nfs"),
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

HAND_OVERS = 500
LATE_HAND_OVERS = 16
#: How long a client is cut off, in seconds: a lease of this server.
AWAY_S = 10.0


@pytest.fixture(scope="module")
def employed(share: Share) -> Share:
    """The share, and a clerk at work in each client."""
    for machine in (share.one, share.two):
        employ(machine)
    return share


@pytest.fixture
def clerks(employed: Share) -> Iterator[list[Desk]]:
    """A desk for the clerk of each client."""
    with desks(employed.network, employed.one, employed.two) as found:
        yield found


@pytest.fixture
def readers(employed: Share) -> Iterator[list[Desk]]:
    """A second clerk at each client, who works while the first one does."""
    with desks(employed.network, employed.one, employed.two) as found:
        yield found


def test_hand_overs_between_clients(share: Share, clerks: list[Desk]) -> None:
    one, two = clerks
    options = share.one.run("grep", "-A1", share.point, "/proc/self/mountstats").out
    assert "acregmin=3,acregmax=60,acdirmin=30,acdirmax=60,hard" in options
    line = Line(share.point, "line")
    begun = time.monotonic()
    for number in range(HAND_OVERS):
        writer, reader = (one, two) if number % 2 == 0 else (two, one)
        line.hand_over(writer, reader)
    took_s = time.monotonic() - begun
    naive = Naive()
    for number in range(12):
        writer, reader = (one, two) if number % 2 == 0 else (two, one)
        naive.hand_over(writer, reader, f"{share.point}/naive-{number}.npy", 4 << 20)
    print(f"{line.done} hand-overs in {took_s:.0f} s: {line.stale} stale, {line.torn} torn")
    print(f"{naive.done} naive ones: {naive.stale} stale, {naive.torn} torn")
    assert (line.done, line.stale, line.torn) == (HAND_OVERS, 0, 0)
    assert line.kept == HAND_OVERS - 1, "children refer to what they did not change"
    assert naive.stale + naive.torn > 0, "there is no trouble here that the store could avoid"


def test_a_retried_parent_under_the_same_path(share: Share, clerks: list[Desk]) -> None:
    """The folder of an attempt that failed is set aside, and another takes its name: clients
    go on seeing the old one by that name, until they ask."""
    one, two = clerks
    path = f"{share.point}/retried"
    first = one.ask("save", root=share.point, path=path, number=1, nbytes=8000, writer="7.1")
    assert two.ask("load", root=share.point, path=path, number=1, digest=first["digest"])
    assert one.machine.as_user("mv", path, f"{path}.superseded.1").code == 0
    second = one.ask("save", root=share.point, path=path, number=2, nbytes=8000, writer="7.2")
    assert two.ask("load", root=share.point, path=path, number=2, digest=second["digest"])
    # And whoever was told of the first attempt is told what is wrong.
    with pytest.raises(Refused, match=r"StaleWeights"):
        two.ask(
            *("load",), root=share.point, path=path, number=1, digest=first["digest"],
            stale_timeout_s=1.0,
        )  # fmt: skip


def test_plain_files_between_clients(share: Share, clerks: list[Desk]) -> None:
    one, two = clerks
    for number in range(10):
        writer, reader = (one, two) if number % 2 == 0 else (two, one)
        path = f"{share.point}/plain-{number}.npy"
        assert not reader.ask("look", path=path)
        told = writer.ask("save_plain", path=path, number=number, nbytes=1 << 20)
        assert told["kind"] == "files"
        assert reader.ask("load_plain", path=path, number=number, digest=told["digest"])


def test_hand_overs_over_late_and_lossy_links(share: Share, clerks: list[Desk]) -> None:
    one, two = clerks
    line = Line(share.point, "late")
    for machine in (share.one, share.two):
        machine.netem(delay_ms=20, loss_percent=1)
    try:
        for number in range(LATE_HAND_OVERS):
            writer, reader = (one, two) if number % 2 == 0 else (two, one)
            line.hand_over(writer, reader)
    finally:
        for machine in (share.one, share.two):
            machine.netem_off()
    print(f"{line.done} late hand-overs: {line.stale} stale, {line.torn} torn")
    assert (line.done, line.stale, line.torn) == (LATE_HAND_OVERS, 0, 0)


def test_the_server_crashes_while_saves_and_loads_are_under_way(
    share: Share, clerks: list[Desk], readers: list[Desk]
) -> None:
    one, two = clerks
    lines = {desk: Line(share.point, f"crash-{desk.machine.name}", 1 << 20) for desk in clerks}
    saving = {}

    def save(desk: Desk, number: int) -> None:
        line = lines[desk]
        path = f"{line.root}/{line.name}/{number}"
        saving[desk, number] = desk.begin(
            *("save",), root=line.root, path=path, number=number, nbytes=line.nbytes
        )

    for number in range(12):  # enough to be in the midst of one when the power goes
        for desk in clerks:
            save(desk, number)
    loading = []

    def load(reader: Desk, writer: Desk, number: int) -> None:
        line = lines[writer]
        path, told = f"{line.root}/{line.name}/{number}", saving[writer, number].result(120)
        loading.append(
            reader.begin(
                *("load",), root=line.root, path=path, number=number, digest=told["digest"]
            )
        )

    for number in range(3):
        load(readers[1], one, number)
        load(readers[0], two, number)
    share.server.cut_power()
    held = sum(not order.done() for order in (*saving.values(), *loading))
    for desk, reader, other in zip(clerks, readers, reversed(clerks), strict=True):
        save(desk, 12)  # and what begins without a server
        load(reader, other, 1)
    share.server.boot()
    for (desk, number), order in saving.items():
        line = lines[desk]
        line.saved[f"{line.root}/{line.name}/{number}"] = number, order.result(240)["digest"]
    assert all(order.result(240) for order in loading)
    print(f"{held} of 30 saves and loads had not ended when the server crashed")
    for desk, line in lines.items():
        for path in line.saved:
            line.check(two if desk is one else one, path)
        assert (len(line.waits), line.stale, line.torn) == (13, 0, 0)


def test_a_client_that_was_cut_off_goes_on(share: Share, clerks: list[Desk]) -> None:
    one, two = clerks
    line = Line(share.point, "cut")
    line.hand_over(one, two)
    path, told = f"{share.point}/cut/alone", "/tmp/cut-off"
    saving = one.begin(
        *("save_when",), told=told, root=share.point, path=path, number=7, nbytes=1 << 20
    )
    assert share.one.await_(lambda: share.one.run("test", "-e", f"{told}.waits").code == 0, 280)
    share.network.cut(share.one)
    try:
        share.one.run("touch", told)
        end = time.monotonic() + AWAY_S
        number = 0
        while time.monotonic() < end:  # the other one has nothing of it
            path_of_two = f"{share.point}/cut/two-{number}"
            two.ask("save", root=share.point, path=path_of_two, number=number, nbytes=8000)
            number += 1
            time.sleep(0.2)
        assert share.one.run("test", "-e", f"{told}.done").code != 0, "it waits for the server"
    finally:
        share.network.heal(share.one)
    line.saved[path] = 7, saving.result(240)["digest"]
    line.check(two, path)
    line.hand_over(one, two)
    assert (line.stale, line.torn, len(line.waits)) == (0, 0, 3)


def test_a_full_export(share: Share, clerks: list[Desk]) -> None:
    one, two = clerks
    point = "/mnt/small"
    with small_export(share, "small", "20M", point):
        first = one.ask("save", root=point, path=f"{point}/1", number=1, nbytes=4 << 20)
        with pytest.raises(Refused, match=r"DiskFull.*no space for 33,6") as refused:
            one.ask("save", root=point, path=f"{point}/2", number=2, nbytes=32 << 20)
        assert "weights gc" in refused.value.text
        assert one.ask("listing", path=f"{point}/2") == [], "nothing half-written is left"
        saved = _when_there_is_room(one, point)
        for number, done in ((1, first), (3, saved)):
            assert two.ask(
                *("load",), root=point, path=f"{point}/{number}", number=number,
                digest=done["digest"],
            )  # fmt: skip


def _when_there_is_room(desk: Desk, point: str) -> dict[str, Any]:
    """Save; a server may keep a file that was removed for some moments, and its room."""
    saved: dict[str, Any] = {}

    def is_saved() -> bool:
        path = f"{point}/3"
        try:
            saved.update(desk.ask("save", root=point, path=path, number=3, nbytes=4 << 20))
        except Refused as error:
            assert error.name == "DiskFull", error  # noqa: PT017
            return False
        return True

    wait_until(is_saved, "the room of what was not saved comes back")
    return saved


def test_an_export_that_is_turned_read_only(share: Share, clerks: list[Desk]) -> None:
    one, two = clerks
    point = "/mnt/turned"
    with small_export(share, "turned", "20M", point) as folder:
        before = one.ask("save", root=point, path=f"{point}/1", number=1, nbytes=8000)
        export(share, folder, "ro")
        with pytest.raises(Refused, match=r"StorageReadOnly.*Read-only"):
            one.ask("save", root=point, path=f"{point}/2", number=2, nbytes=8000)
        assert two.ask("load", root=point, path=f"{point}/1", number=1, digest=before["digest"])
        export(share, folder, "rw")
        assert one.ask("save", root=point, path=f"{point}/2", number=2, nbytes=8000)


def test_an_export_that_is_taken_back_and_comes_again(share: Share, clerks: list[Desk]) -> None:
    one, two = clerks
    point = "/mnt/changed"
    with small_export(share, "changed", "20M", point) as folder:
        saved = one.ask("save", root=point, path=f"{point}/1", number=1, nbytes=8000)
        withdraw(share, folder)
        with pytest.raises(Refused, match=r"Storage(Stale|Denied|Away)|StaleWeights"):
            one.ask("save", root=point, path=f"{point}/2", number=2, nbytes=8000)
        assert one.seconds < 90
        loading = two.begin(
            *("load",), root=point, path=f"{point}/1", number=1, digest=saved["digest"]
        )
        export(share, folder, "rw")
        assert loading.result(120)
        assert one.ask("save", root=point, path=f"{point}/2", number=2, nbytes=8000)


def test_an_agent_beats_on_while_its_share_is_away(share: Share) -> None:
    program = str(ROOT / "tests/system/nfs/store/agent_at_work.py")
    one = share.one
    agent = one.start(*one.user_argv(*one.python_argv(program, share.point)))
    assert one.await_(lambda: "ready" in agent.said() or not agent.alive(), 280)
    assert "first: finished" in agent.said(), agent.said()
    share.network.cut(one)
    try:
        agent.signal("USR1")
        assert one.await_(lambda: "cut off" in agent.said() or not agent.alive(), 280)
    finally:
        share.network.heal(one)
    answer = agent.wait(280)
    beats = re.search(r"cut off: (\d+) beats, 0 ends", answer.out)
    assert beats is not None, answer
    assert int(beats[1]) >= 3, answer  # none, if the loop waited
    assert "then: finished, files" in answer.out, answer


def test_nothing_is_removed_under_a_reader(share: Share, clerks: list[Desk]) -> None:
    """A file that one client removes is gone for readers on others, at once or (NFSv4, as here)
    when the server has forgotten who had it open."""
    one, two = clerks
    root = f"{share.point}/kept"
    plain = {"weights_kind": "files", "weights_digest": "of files"}
    rows = [
        {"id": 1, "save_path": "1.npy", "number": 0.1, **plain},
        {"id": 2, "save_path": "2", "parent": 1, "state": "running"},
        {"id": 3, "save_path": "3.npy", "number": 0.2, **plain},
        {"id": 4, "save_path": "4.npy", "number": 0.9, **plain},
    ]
    assert share.one.as_user("mkdir", root).code == 0
    for number in (1, 3, 4):
        one.ask("save_plain", path=f"{root}/{number}.npy", number=number, nbytes=1 << 20)
    two.ask("hold", path=f"{root}/1.npy")
    assert one.ask("keep", root=root, rows=rows, pins=[3]) == []
    assert two.ask("read_held") > 1 << 20, "its child still runs"
    assert one.ask("keep", root=root, rows=rows, pins=[]) == [3]
    rows[1]["state"] = "ended"
    assert one.ask("keep", root=root, rows=rows, pins=[]) == [1, 2, 3]
    assert not one.ask("look", path=f"{root}/1.npy"), "nothing kept it any more"


def test_a_client_crashes_in_the_middle_of_saves(share: Share) -> None:
    """Others see nothing of one, all of another, and what is left of both is cleaned up."""
    one, two = share.one, share.two
    paths = {step: f"{share.point}/torn-{step}" for step in ("data.written", "manifest.renamed")}
    for step, path in paths.items():
        program = f"from tests.system.nfs.store.clerk import *; Clerk().save({share.point!r}, "
        two.start(
            *two.user_argv(
                *(
                    "env",
                    f"BEQUEATH_FAILPOINTS=weights.{step}=stop",
                    "BEQUEATH_FAILPOINTS_STRUCK=/tmp",
                ),
                *two.python_argv(f"{program}{path!r}, 5, 1 << 20)"),
            )
        )
    for step in paths:
        assert two.await_(lambda: two.run("test", "-e", f"/tmp/weights.{step}").code == 0, 280)  # noqa: B023
    with desks(share.network, two) as (desk,):
        desk.ask(
            "save_plain", path=f"{share.point}/torn-data.written/open.npy", number=1, nbytes=8000
        )
        desk.ask("hold", path=f"{share.point}/torn-data.written/open.npy")
        desk.ask("remove", path=f"{share.point}/torn-data.written/open.npy")
    two.cut_power()
    with desks(share.network, one) as (desk,):
        torn, whole = paths.values()
        with pytest.raises(Refused, match="WeightsNotFound"):
            desk.ask("load", root=share.point, path=torn, number=5)
        assert desk.ask("load", root=share.point, path=whole, number=5)
        left = desk.ask("listing", path=torn)
        assert len([name for name in left if name.startswith(".tmp-")]) == 1, left
        assert desk.ask("sweep", root=share.point, path="torn-data.written", later_s=0) == 0
        assert desk.ask("sweep", root=share.point, path="torn-data.written", later_s=7200) == 2
        assert desk.ask("listing", path=torn) == []
