"""Which machines are asked, in which order, and what becomes of the others when one fails."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from nfs_setup.cluster import plan
from nfs_setup.cluster.plan import Outcome
from nfs_setup.cluster.run_plan import RunPlan
from nfs_setup.host import Ran
from tests.unit.nfs_setup.cluster.pretended_cluster import PROGRAM, Cluster, inventory
from tests.unit.nfs_setup.pretended import tree


@pytest.fixture
def machines(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def conduct(
    machines: Cluster, waves: Sequence[plan.Wave], *, needs_root: bool = True, at_once: int = 10
) -> dict[str, Outcome]:
    run_plan = RunPlan(machines.connect, PROGRAM, needs_root=needs_root, at_once=at_once)
    return {outcome.name: outcome for outcome in run_plan.carry_out(waves)}


def words(outcomes: dict[str, Outcome]) -> dict[str, str]:
    return {name: outcome.word for name, outcome in outcomes.items()}


def test_the_server_first_then_the_clients_and_back(machines: Cluster) -> None:
    hosts = inventory("one", "two", "three")
    bare = {name: tree(machines.host(name).folder) for name in ("nas", "one", "two", "three")}
    done = conduct(machines, plan.set_up(hosts))
    assert set(words(done).values()) == {"set up"}
    assert machines.order[0] == ("nas", "server")
    assert sorted(machines.order[1:]) == [(n, "client") for n in ("one", "three", "two")]
    text = (next((machines.host("nas").folder / "etc/exports.d").iterdir())).read_text()
    assert all(f"{name}(rw,sync" in text for name in ("one", "two", "three"))
    assert machines.host("two").mounted["/mnt/w"][0] == "nas:/srv/w"

    again = conduct(machines, plan.set_up(hosts))
    assert set(words(again).values()) == {"as it should be"}

    stands = conduct(machines, plan.status(hosts))
    assert stands["one"].report is not None
    assert stands["one"].report.shown["mounts"][0]["mounted"]

    machines.order.clear()
    undone = conduct(machines, plan.take_back(hosts))
    assert set(words(undone).values()) == {"undone"}
    assert machines.order[-1] == ("nas", "undo")
    assert {name: tree(machines.host(name).folder) for name in bare} == bare
    assert set(words(conduct(machines, plan.take_back(hosts))).values()) == {"nothing to undo"}


def test_a_plan_changes_nothing_and_needs_no_root(machines: Cluster) -> None:
    machines.users = {"one": 1000}
    done = conduct(machines, plan.set_up(inventory(), dry_run=True), needs_root=False)
    assert set(words(done).values()) == {"planned"}
    report = done["one"].report
    assert report is not None
    assert any("nothing can be changed there" in note.text for note in report.notes)
    assert all(not host.ran for host in machines.hosts.values())


def test_a_client_that_fails_does_not_stop_the_others(machines: Cluster) -> None:
    machines.host("one").fail["mount"] = Ran(32, "", "mount.nfs4: access denied by server")
    machines.away = {"two"}
    hosts = inventory("one", "two", "three")
    done = conduct(machines, plan.set_up(hosts))
    assert words(done) == {"nas": "set up", "one": "failed", "two": "failed", "three": "set up"}
    assert "does not export it to this host" in str(done["one"].error)
    assert "nothing answers at port 22" in str(done["two"].error)

    machines.host("one").fail.clear()
    machines.away.clear()
    mended = conduct(machines, plan.set_up(hosts))
    assert words(mended) == {
        "nas": "as it should be",
        "one": "set up",
        "two": "set up",
        "three": "as it should be",
    }


@pytest.mark.parametrize("how", ["away", "fails"])
def test_without_the_server_no_client_is_touched(machines: Cluster, how: str) -> None:
    if how == "away":
        machines.away = {"nas"}
    else:
        machines.host("nas").fail["service nfs-kernel-server"] = Ran(1, "", "no such module")
    done = conduct(machines, plan.set_up(inventory()))
    assert words(done) == {"nas": "failed", "one": "left out", "two": "left out"}
    assert "the server is not set up" in str(done["one"].error)
    assert [name for name, _ in machines.order] == ([] if how == "away" else ["nas"])


def test_the_server_stays_while_a_client_may_use_it(machines: Cluster) -> None:
    hosts = inventory()
    conduct(machines, plan.set_up(hosts))
    machines.away = {"two"}
    undone = conduct(machines, plan.take_back(hosts))
    assert words(undone) == {"one": "undone", "two": "failed", "nas": "left out"}
    assert "nfs-kernel-server" in machines.host("nas").running
    machines.away = set()
    undone = conduct(machines, plan.take_back(hosts))
    assert words(undone) == {"one": "nothing to undo", "two": "undone", "nas": "undone"}
    assert "nfs-kernel-server" not in machines.host("nas").running


@pytest.mark.parametrize(
    "python, text, hint",
    [(None, "has no python3", "name where it is"), ((3, 6), "is Python 3.6 there", "python3.11")],
)
def test_a_host_without_python(
    machines: Cluster, python: tuple[int, int] | None, text: str, hint: str
) -> None:
    machines.pythons["one"] = python
    done = conduct(machines, plan.set_up(inventory()))
    assert words(done) == {"nas": "set up", "one": "failed", "two": "set up"}
    assert text in str(done["one"].error)
    assert hint in str(done["one"].error)


def test_who_is_no_root_needs_sudo_without_a_password(machines: Cluster) -> None:
    machines.users = {"one": 1000}
    done = conduct(machines, plan.set_up(inventory()))
    assert "is not root there, and sudo -n says: sudo: a password is required" in str(
        done["one"].error
    )
    assert "NOPASSWD" in str(done["one"].error)
    machines.sudo = Ran(127, "", "sudo: not found")
    done = conduct(machines, plan.set_up(inventory()))
    assert "there is no sudo" in str(done["one"].error)
    machines.sudo = Ran(0, "", "")
    assert words(conduct(machines, plan.set_up(inventory())))["one"] == "set up"


def test_two_names_of_one_machine_are_seen(machines: Cluster) -> None:
    machines.names = {"one": "nas", "three": "two"}
    done = conduct(machines, plan.set_up(inventory("one", "two", "three")))
    assert words(done) == {"nas": "set up", "one": "failed", "two": "set up", "three": "failed"}
    assert "is the server itself" in str(done["one"].error)
    assert "same machine as two" in str(done["three"].error)


def test_no_more_at_once_than_allowed(machines: Cluster) -> None:
    meeting, workers = threading.Barrier(2), set()

    def before(name: str) -> None:
        if name != "nas":
            workers.add(threading.current_thread().name)
            meeting.wait(120)  # two are under way at the same time, or this breaks

    machines.before = before
    hosts = inventory("a", "b", "c", "d")
    assert set(words(conduct(machines, plan.set_up(hosts), at_once=2)).values()) == {"set up"}
    assert len(workers) == 2


def test_an_interrupt_awaits_what_is_under_way_and_begins_nothing(machines: Cluster) -> None:
    hosts = inventory("one", "two", "three")
    run_plan = RunPlan(machines.connect, PROGRAM, needs_root=True, at_once=1)
    machines.before = lambda name: run_plan.interrupt() if name == "one" else None
    done = {outcome.name: outcome for outcome in run_plan.carry_out(plan.set_up(hosts))}
    assert words(done) == {
        "nas": "set up",
        "one": "set up",
        "two": "left out",
        "three": "left out",
    }
    assert run_plan.interrupted
    assert "interrupted" in str(done["two"].error)


@pytest.mark.parametrize("how", ["patience", "again"])
def test_a_host_that_hangs_is_not_awaited_for_ever(machines: Cluster, how: str) -> None:
    hosts, hung = inventory("one"), threading.Event()
    run_plan = RunPlan(
        machines.connect, PROGRAM, needs_root=True, patience_s=0.05 if how == "patience" else 3600
    )

    def before(name: str) -> None:
        if name == "one":
            run_plan.interrupt()
            if how == "again":
                run_plan.interrupt()
            hung.wait(120)

    machines.before = before
    done = {outcome.name: outcome for outcome in run_plan.carry_out(plan.set_up(hosts))}
    hung.set()
    assert words(done) == {"nas": "set up", "one": "unknown"}
    assert "--status" in str(done["one"].error)


def test_each_change_is_told(machines: Cluster) -> None:
    states: list[tuple[str, str]] = []
    run_plan = RunPlan(
        machines.connect,
        PROGRAM,
        needs_root=True,
        watch=lambda one: states.append((one.name, one.word)),
    )
    run_plan.carry_out(plan.set_up(inventory("one")))
    assert [word for name, word in states if name == "one"] == [
        "looking",
        "waiting",
        "working",
        "set up",
    ]
    assert states.index(("nas", "set up")) < states.index(("one", "working"))


def test_a_fault_of_ours_is_not_taken_for_the_hosts(machines: Cluster) -> None:
    def before(name: str) -> None:
        if name == "one":
            raise ZeroDivisionError

    machines.before = before
    with pytest.raises(ZeroDivisionError):
        conduct(machines, plan.set_up(inventory()))
