"""Hosts on which trials fail, that are full, gone, or not who they were; others go on."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from dispatcher.ssh import connect
from tests.integration.machines.conftest import CODE, Lab, joined, ours_on, processes_on
from tests.support import sshd
from tests.support.processes import wait_until, words_of
from tests.support.ssh_hosts import SMALL_DISK, why_not

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

#: Metrics of a whole trial of ``code/steady_trial.py``: five on its way, and the last one.
METRICS = [(float(step), 0) for step in range(5)] + [(5.0, 1)]

#: Short, so that silence is seen; long enough that a busy machine loses nobody.
LEASES = {"alive": 1, "suspect": 3, "lost": 180}


class Story:
    """An experiment on some hosts that goes on until :meth:`enough`."""

    def __init__(self, lab: Lab, service: Any, **keys: Any) -> None:
        self.lab = lab
        self._enough = lab.share / lab.base.name / "enough"
        self._enough.parent.mkdir(parents=True, exist_ok=True)
        values: dict[str, Any] = {
            "tuner": {
                "className": "steady_tuner:Steady",
                "codeDirectory": str(CODE),
                "classArgs": {"enough": str(self._enough)},
            },
            "trialFunction": "steady_trial:main",
            "maxTrialNumber": 10_000,
            "lookahead": 6,  # what is asked for already must still run at the end
            "maxFailedTrialsInARow": 0,
            "leases": LEASES,
        }
        self.folder = lab.create(service, **values | keys)
        self.head = lab.lead(self.folder)

    def end(self) -> None:
        """No further trial; those that are under way end, and the checker is content."""
        self._enough.touch()
        self.lab.finish(self.folder, self.head)

    def until(self, condition: Callable[[], object], what: str) -> None:
        self.lab.until(condition, what, self.folder)

    def ended(self, worker: str = "", reason: str = "finished") -> list[int]:
        """Trials of which an attempt ended so, there or anywhere."""
        ends = self.lab.attempts(self.folder)
        return [t for t, _, w, r in ends if r == reason and worker in ("", w)]

    def more(self, number: int, worker: str = "") -> None:
        """Wait for so many further trials to go well."""
        before = len(self.ended(worker))
        self.until(
            lambda: len(self.ended(worker)) >= before + number,
            f"{number} more go well {worker and f'on {worker}'}",
        )

    def notices(self, worker: str) -> list[str]:
        """What the head said about a worker, in order."""
        return re.findall(rf"worker {worker} .*", self.log())

    def log(self) -> str:
        """The head's, so far."""
        path = self.folder / "logs" / "head.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def noticed(self, worker: str, pattern: str) -> bool:
        return any(re.search(pattern, text) for text in self.notices(worker))

    def all_counted_once(self) -> None:
        """Each trial has gone well once, with all that it reported, however often it began."""
        finished = Counter(self.ended())
        assert set(finished.values()) == {1}, finished
        assert len(finished) == len(self.lab.events(self.folder, e.Proposed))
        said = self.lab.counted_metrics(self.folder)
        for trial, attempt, _, reason in self.lab.attempts(self.folder):
            if reason == "finished":
                assert said[trial, attempt] == METRICS, trial


def sessions_on(lab: Lab, name: str) -> list[psutil.Process]:
    """The processes of sshd's sessions on a host."""
    return [p for p, title in _titles_on(lab, name) if "[listener]" not in title]


def listener_on(lab: Lab, name: str) -> psutil.Process:
    """The process of sshd that takes connections, which is its only one without a session."""
    found: list[psutil.Process] = []

    def look() -> bool:
        # Whoever it has just started for a connection has its title for a moment.
        found[:] = [p for p, title in _titles_on(lab, name) if "[listener]" in title]
        return len(found) == 1

    wait_until(look, f"the sshd of {name} is alone")
    return found[0]


def _titles_on(lab: Lab, name: str) -> list[tuple[psutil.Process, str]]:
    titles = [(p, " ".join(words_of(p))) for p in processes_on(lab.hosts[name])]
    return [(p, title) for p, title in titles if title.startswith("sshd: ")]


def end_sessions(lab: Lab, name: str) -> int:
    """All connections to a host end at once; how many processes that took."""
    sessions = sessions_on(lab, name)
    for process in sessions:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    return len(sessions)


def test_a_host_on_which_trials_fail_is_left_out_and_taken_back_when_it_is_mended(lab: Lab) -> None:
    """Mutations: ``judge`` draws no conclusions; ``end_quarantines`` gives nobody a probe."""
    data = [lab.hosts[name].disk / "scratch/data" for name in ("h1", "h2")]
    data[0].touch()
    story = Story(
        lab,
        lab.service("h1", "h2"),
        trialEnvironment={"WANTED": "/scratch/data"},
        trialRetries=20,  # whatever comes to the bad host, it ends well elsewhere
        retryBackoff=0,
        quarantineAfter=2,
        quarantinePause=1,
    )
    try:
        story.until(lambda: story.noticed("h2", "left out for 1 s: 2 trials failed"), "left out")
        story.more(4, "h1")
        story.until(lambda: story.noticed("h2", "left out for 2 s: .*as well"), "a probe failed")
        data[1].touch()
        story.until(lambda: story.noticed("h2", "works again"), "taken back")
        story.more(4, "h2")
        story.end()
    finally:
        for path in data:
            path.unlink(missing_ok=True)
    story.all_counted_once()
    assert story.ended("h1", "failed") == []
    failed = story.ended("h2", "failed")
    assert len(failed) <= 20, "left out, it got a probe now and then"
    assert not story.noticed("h1", "left out")
    ends = lab.events(story.folder, e.AttemptEnded)
    causes = [x.text for x in ends if x.reason is EndReason.FAILED]
    assert all("/scratch/data" in text for text in causes), causes


@pytest.mark.extended
def test_a_full_disk_is_named_and_the_host_is_used_when_there_is_room(lab: Lab) -> None:
    """Mutations: what the unpacking says is not read; a failed start ends the agent."""
    fill = f"dd if=/dev/zero of={SMALL_DISK}/fill bs=64k; echo full"
    free = f"rm {SMALL_DISK}/fill"
    with connect(lab.hosts["h2"].target(), dial=lab.hosts.dial) as h2:
        assert h2.run(["sh", "-c", fill], limit_s=60).ok
        machines = [lab.machine("h1"), lab.machine("h2", workFolder=f"{SMALL_DISK}/bequeath")]
        story = Story(
            lab,
            {"platform": "ssh", "machineList": machines},
            trialEnvironment={"SCRATCH_BYTES": "100000"},
            trialRetries=20,
            retryBackoff=0,
            quarantineAfter=2,
            quarantinePause=1,
        )
        lost = lambda: {x.worker: x.reason for x in lab.events(story.folder, e.WorkerLost)}  # noqa: E731
        story.until(lost, "h2 is named")
        assert "no space left" in lost()["h2"].lower()
        assert h2.run(["sh", "-c", free], limit_s=60).ok
        story.more(2, "h2")
        assert story.ended("h1"), "which went on"
        # The same while trials run there.
        assert h2.run(["sh", "-c", fill], limit_s=60).ok
        story.until(lambda: story.noticed("h2", "left out"), "h2 is left out")
        story.more(2, "h1")
        assert h2.run(["sh", "-c", free], limit_s=60).ok
        story.until(lambda: story.noticed("h2", "works again"), "taken back")
        story.more(2, "h2")
        story.end()
    story.all_counted_once()
    assert set(lost()) == {"h2"}
    assert len(joined(lab, story.folder)) == 2, "its agent went on"
    ends = lab.events(story.folder, e.AttemptEnded)
    said = [x.text for x in ends if x.reason is not EndReason.FINISHED]
    assert said
    assert all("no space left" in text.lower() for text in said), said


@pytest.mark.extended
def test_a_tunnel_that_ends_again_and_again_costs_nothing_but_time(lab: Lab) -> None:
    """Mutations: the agent forgets what was not acknowledged; the head takes words twice."""
    names = ("h1", "h2", "h3")
    story = Story(lab, lab.service(*names, reuseMode="inProcess"))
    story.until(lambda: len(joined(lab, story.folder)) == 3, "all join")
    for _ in range(3):
        for _ in range(2):  # in the midst of work, and as soon as there is a connection again
            for name in names:
                story.until(lambda name=name: end_sessions(lab, name), f"{name} had a connection")
        story.more(4)
    story.end()
    story.all_counted_once()
    assert lab.events(story.folder, e.WorkerLost) == []
    assert {x.attempt for x in lab.events(story.folder, e.AttemptEnded)} == {1}
    assert set(lab.ended_on(story.folder).values()) == set(names)


@pytest.mark.extended
def test_a_host_that_loses_its_power_and_comes_back_is_used_again(lab: Lab) -> None:
    """Mutation: ``is_running`` believes any process of that number."""
    story = Story(lab, lab.service("h1", "h2"))
    story.more(2, "h2")
    lab.hosts.crash("h2")
    suspects = lambda: {x.worker for x in lab.events(story.folder, e.WorkerSuspect)}  # noqa: E731
    story.until(lambda: "h2" in suspects(), "its silence is seen")
    story.more(2, "h1")
    lab.hosts.start("h2")
    story.more(2, "h2")
    story.end()
    story.all_counted_once()
    (lost,) = lab.events(story.folder, e.WorkerLost)
    assert (lost.worker, lost.hopeless) == ("h2", False)
    ends = lab.events(story.folder, e.AttemptEnded)
    again = {x.trial for x in ends if x.attempt == 2}
    assert {x.attempt for x in ends} <= {1, 2}
    assert len(again) == 2, "its two slots, and nobody else's"


def test_a_host_that_shows_another_key_gets_nothing_any_more(lab: Lab) -> None:
    """Mutations: any key is taken; a running agent is lost before its lease is over."""
    host = lab.hosts["h2"]
    key = host.disk / "etc/ssh/host_key"
    leases = {"alive": 1, "suspect": 3, "lost": 8}
    story = Story(lab, lab.service("h1", "h2"), leases=leases, headGrace=10)
    story.more(2, "h2")
    logins = host.log().count("Accepted ")
    key.unlink()
    key.with_suffix(".pub").unlink()
    sshd.make_key(key)
    begun = host.log().count("Server listening on ")
    listener_on(lab, "h2").send_signal(1)  # SIGHUP: it begins anew, with the key that is there
    wait_until(lambda: host.log().count("Server listening on ") > begun, "it has the new key")
    changed = time.time()
    assert end_sessions(lab, "h2")
    try:
        lost = lambda: [x for x in lab.events(story.folder, e.WorkerLost) if x.worker == "h2"]  # noqa: E731
        story.until(lost, "h2 is lost")
        story.more(4, "h1")
        story.until(lambda: not ours_on(host), "the agent there ends by itself")
        assert host.log().count("Accepted ") == logins
    finally:
        lab.hosts.learn()
    story.end()
    story.all_counted_once()
    assert "key" in lost()[0].reason
    assert "bequeath hosts" in story.log()
    rows = lab.rows(story.folder)
    at = next(r.at for r in rows if isinstance(r.event, e.WorkerLost) and r.event == lost()[0])
    assert at - changed >= leases["suspect"]
