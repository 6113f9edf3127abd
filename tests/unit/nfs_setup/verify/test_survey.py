"""A survey over two real processes, and over machines that are lost, lie, or see nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dispatcher.cli.nfs.login import setup_program
from nfs_setup.cluster.asking import RemotePeer
from nfs_setup.cluster.members import Unreachable
from nfs_setup.errors import MachineRefuses, RequestRefused
from nfs_setup.host import Ran
from nfs_setup.plain_values import made_of
from nfs_setup.verify import Level, LocalPeer, PeerLost, Place, Plan, facts, judged, survey
from nfs_setup.verify.files import new_name
from tests.unit.nfs_setup.verify.canned_peer import CannedPeer

ROOT = Path(__file__).parents[4]
PLAN = Plan(big_bytes=1 << 20, rounds=2, watch_s=60.0, churn_s=0.2, hold_s=60.0, limit_s=60.0)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is to end in order gets the time to, however busy the machine."""
    monkeypatch.setattr("nfs_setup.verify.peers.END_S", 120.0)


@pytest.fixture
def peers() -> Iterator[list[LocalPeer]]:
    found = [LocalPeer("here"), LocalPeer("here again")]
    yield found
    for peer in found:
        peer.close()


def wrong(found: Any) -> list[tuple[str, str]]:
    return [(f.check, f.where) for f in judged(found) if f.level is Level.WRONG]


def test_two_processes_on_a_good_folder(tmp_path: Path, peers: list[LocalPeer]) -> None:
    said: list[str] = []
    found = survey([Place(peer, str(tmp_path), "here") for peer in peers], PLAN, said.append)
    assert wrong(found) == [], judged(found)
    assert os.listdir(tmp_path) == [], "nothing is left"
    one, two = found.machines
    assert isinstance(one.seen, facts.Seen)
    assert set(one.seen.delays_s) == {
        f"here again/{case}" for case in ("new", "announced", "sought", "replaced", "listed")
    }
    assert isinstance(two.churned, facts.Churned)
    assert two.churned.reads["here"] > 0
    assert two.habits is None, "one machine is asked for its habits once"
    assert [isinstance(lock.tried, facts.Held) and lock.tried.refused for lock in found.locks] == [
        *(True, True)
    ]
    assert (found.one_host, len(found.rereads), len(said) > 3) == (True, 1, True)
    json.dumps(asdict(found))


def test_a_process_ends_with_who_asked_it_and_removes_what_it_began(tmp_path: Path) -> None:
    name = new_name()
    peer = LocalPeer("here")
    begin = {"do": "begin", "path": str(tmp_path), "name": name, "own": "m0", "make": True}
    begin["limit_s"] = 0.0
    assert "facts" in peer.ask(begin, 60.0)
    assert os.listdir(tmp_path) == [name]
    peer.close()
    assert os.listdir(tmp_path) == []


def test_the_end_is_not_missed_though_its_signal_comes_before_the_wait(tmp_path: Path) -> None:
    """A handler that ran just before the main thread begins to wait does not end that wait."""
    deaf = (
        "import signal, sys; signal.pthread_kill = lambda *_: None; "
        "from nfs_setup.verify.__main__ import main; sys.exit(main())"
    )
    name = new_name()
    begin = {"do": "begin", "path": str(tmp_path), "name": name, "own": "m0", "make": True}
    done = subprocess.run(
        [sys.executable, "-c", deaf],
        input=json.dumps({"verb": "probe", **begin, "limit_s": 0.0}) + "\n",
        capture_output=True,
        text=True,
        timeout=240,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert "facts" in json.loads(done.stdout)
    assert os.listdir(tmp_path) == [], "what was begun is removed"


def test_a_process_that_dies_is_lost() -> None:
    peer = LocalPeer("here")
    os.kill(peer.process.pid, 9)
    with pytest.raises(PeerLost, match="died"):
        peer.ask({"do": "now"}, 60.0)
    peer.close()


def test_a_process_that_takes_too_long_is_interrupted_and_cleans_up(tmp_path: Path) -> None:
    name = new_name()
    peer = LocalPeer("here")
    begin = {"do": "begin", "path": str(tmp_path), "name": name, "own": "m0", "make": True}
    peer.ask({**begin, "limit_s": 0.0}, 60.0)
    with pytest.raises(PeerLost, match="no answer"):
        peer.ask(
            {
                "do": "hold",
                "path": f"{tmp_path}/{name}/lock",
                "marks": [f"{tmp_path}/{name}/no"],
                "seconds": 1000.0,
            },
            0.2,
        )
    with pytest.raises(PeerLost, match="something else"):
        peer.ask({"do": "now"}, 60.0)
    peer.close()
    assert peer.process.returncode == 0
    assert os.listdir(tmp_path) == []


def test_what_a_process_refuses_is_raised(peers: list[LocalPeer]) -> None:
    with pytest.raises(RequestRefused, match="no probe"):
        peers[0].ask({"do": "nothing"}, 60.0)
    assert "facts" in peers[0].ask({"do": "now"}, 60.0), "and it goes on"


@pytest.mark.parametrize(
    "code, check", [("EROFS", "writing"), ("EACCES", "writing"), ("ENOSPC", "writing")]
)
def test_who_cannot_write_is_asked_nothing_more(tmp_path: Path, code: str, check: str) -> None:
    failed = {"failed": {"doing": "begin", "code": code, "text": "no"}}
    one, two = CannedPeer("one", begin=failed), CannedPeer("two")
    found = survey([Place(one, str(tmp_path)), Place(two, str(tmp_path))], PLAN)
    assert wrong(found) == [(check, "one")]
    assert "habits" not in one.asked
    assert "habits" in two.asked, "the other one is"
    assert os.listdir(tmp_path) == []


def test_a_machine_that_is_lost_is_asked_once_and_the_rest_goes_on(tmp_path: Path) -> None:
    one, two = CannedPeer("one", lay=PeerLost("no answer in 30 s")), CannedPeer("two")
    found = survey([Place(one, str(tmp_path)), Place(two, str(tmp_path))], PLAN)
    assert one.asked[-1] == "lay"
    assert os.listdir(tmp_path) == [], "somebody else cleans up"
    assert wrong(found) == [("publishing", "one")]


def test_who_interrupts_waits_for_nobody_and_leaves_nothing(tmp_path: Path) -> None:
    slow = LocalPeer("slow")
    hasty = CannedPeer("hasty", write_big=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        survey([Place(slow, str(tmp_path)), Place(hasty, str(tmp_path))], PLAN)
    slow.close()
    assert os.listdir(tmp_path) == []
    published = CannedPeer("published", publish=KeyboardInterrupt())
    places = [Place(CannedPeer("one"), str(tmp_path)), Place(published, str(tmp_path))]
    with pytest.raises(KeyboardInterrupt):
        survey(places, PLAN)
    assert os.listdir(tmp_path) == []


def test_nobody_can_be_asked(tmp_path: Path) -> None:
    one = CannedPeer("one", look=PeerLost("no answer in 30 s"))
    found = survey([Place(one, str(tmp_path))], PLAN)
    assert wrong(found) == [("share", "one")]
    assert "begin" not in one.asked


def test_another_folder_under_the_same_name_is_no_share(tmp_path: Path) -> None:
    """The second machine's folder is its own: what the first one makes never shows there."""
    gone = {"failed": {"doing": "begin", "code": "ENOENT", "text": "No such file"}}
    one, two = CannedPeer("one"), CannedPeer("two", begin=gone)
    found = survey([Place(one, str(tmp_path)), Place(two, str(tmp_path))], PLAN)
    assert wrong(found) == [("the same share", "two")]


def test_an_answer_that_is_none_is_told(tmp_path: Path) -> None:
    one = CannedPeer("one", pace={"facts": {"rounds": "many"}}, habits={"x": 1})
    found = survey([Place(one, str(tmp_path))], PLAN)
    assert wrong(found) == [("habits", "one"), ("small files", "one")]


def test_a_quick_survey_is_of_each_machine_alone(tmp_path: Path) -> None:
    one = CannedPeer("one")
    found = survey([Place(one, str(tmp_path))], Plan(rounds=1, quick=True))
    assert one.asked == ["look", "now", "begin", "habits", "pace", "end"]
    assert wrong(found) == []


def test_another_machine_needs_nothing_but_python(tmp_path: Path) -> None:
    class Far:
        def run(self, argv: Sequence[str], *, stdin: bytes, limit_s: float) -> Ran:
            argv = [sys.executable if word == "python3" else word for word in argv]
            done = subprocess.run(argv, input=stdin, capture_output=True, timeout=limit_s, cwd="/")
            return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    peer = RemotePeer("far", Far(), setup_program())
    assert made_of(facts.Moment, peer.ask({"do": "now"}, 60.0)["facts"], "answer").now_s > 0
    with pytest.raises(RequestRefused, match="no probe"):
        peer.ask({"do": "nothing"}, 60.0)


@pytest.mark.parametrize(
    "ran, words",
    [
        (Ran(124, "", ""), "no answer"),
        (Ran(127, "", "python3: not found"), "python3: not found"),
        (Ran(0, "Welcome!\n", ""), "Welcome!"),
        (Ran(0, "{half", ""), r"gave no answer .*\{half"),
        (Ran(3, '{"too_old": [3, 6, 8]}', ""), "Python 3.6.8 there, and 3.9 is needed"),
    ],
)
def test_machines_that_give_no_answer(ran: Ran, words: str) -> None:
    with pytest.raises(PeerLost, match=words):
        RemotePeer("far", Answers(ran), setup_program()).ask({"do": "now"}, 1.0)


def test_an_error_that_is_no_object_is_one_all_the_same() -> None:
    ran = Ran(1, '{"error": "no"}', "")
    with pytest.raises(MachineRefuses, match="failed without a reason"):
        RemotePeer("far", Answers(ran), setup_program()).ask({"do": "now"}, 1.0)


def test_a_connection_that_breaks_is_a_machine_that_is_lost() -> None:
    with pytest.raises(PeerLost, match="the line is cut"):
        RemotePeer("far", Answers(Unreachable("the line is cut")), setup_program()).ask({}, 1.0)


class Answers:
    """A machine that ends every program in the same way."""

    def __init__(self, end: Ran | Unreachable) -> None:
        self.end = end

    def run(self, argv: Sequence[str], *, stdin: bytes, limit_s: float) -> Ran:
        if isinstance(self.end, Unreachable):
            raise self.end
        return self.end


def test_a_line_that_is_no_request_is_answered_and_removes_nothing(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    begin = {"do": "begin", "path": str(tmp_path), "name": "weights", "own": "a", "make": True}
    with subprocess.Popen(
        [sys.executable, "-m", "nfs_setup.verify"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in ("nonsense", "[]", json.dumps({**begin, "limit_s": 0.0})):
            print(line, file=process.stdin, flush=True)
            assert next(iter(json.loads(process.stdout.readline()))) == "error"
        process.stdin.close()
        assert process.wait(120) == 0
    assert os.listdir(tmp_path) == ["weights"]
