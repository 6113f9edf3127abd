"""Promise 10: why nothing runs is answered in one sentence. Every cause has its scenario."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason
from dispatcher.core.reservations import PASSED_OVER
from dispatcher.core.resources import Offer
from dispatcher.core.trouble import troubles
from dispatcher.core.why import Cause, why
from tests.support.cluster import GB, Cluster, gpus
from tests.support.scene import HOST, Scene


def _busy() -> Scene:
    scene = Scene(slots=1)
    scene.propose(0)
    return scene


def _over() -> Scene:
    scene = Scene(slots=1, max_trials=1)
    scene.whole(0)
    return scene


def _draining() -> Scene:
    scene = _busy()
    scene.say(e.StopRequested(e.StopKind.DRAIN, "Ctrl-C"))
    return scene


def _stalled() -> Scene:
    scene = Scene(slots=1, lookahead=1)
    scene.say(e.ForeignWaitSeen(TrialId(0)))
    scene.tick()
    return scene


def _host_away() -> Scene:
    scene = Scene(begin=False)
    scene.say(e.HeadStarted(1), e.WorkerJoined(HOST, 2))
    return scene


def _worker_away() -> Scene:
    scene = Scene()
    scene.say(e.WorkerLost(HOST, "gone"))
    scene.propose(0)
    return scene


def _worker_waits() -> Scene:
    scene = Scene()
    scene.say(e.WorkerLost(HOST, "preempted", planned=True), e.WorkerWaits(HOST, "Priority", 180.0))
    scene.propose(0)
    return scene


def _worker_silent() -> Scene:
    scene = Scene()
    scene.say(e.WorkerSuspect(HOST, 30.0))
    scene.propose(0)
    return scene


def _backoff() -> Scene:
    scene = _busy()
    scene.exit(0, EndReason.FAILED)
    return scene


def _all_proposed() -> Scene:
    scene = Scene(slots=2, max_trials=1)
    scene.propose(0)
    return scene


def _not_now() -> Scene:
    scene = Scene(slots=2)
    scene.propose(0)
    scene.not_now(1)
    return scene


def _abandoned() -> Scene:
    scene = Scene(slots=2)
    scene.propose(0)
    while scene.state.open:
        (number,) = scene.state.open
        scene.refuse(number, e.RequestEnd.ABANDONED)
    return scene


def _blocked() -> Scene:
    scene = Scene(slots=2, max_trials=2)
    scene.propose(0)
    scene.wait(1, 0)
    return scene


def _lookahead() -> Scene:
    scene = Scene(slots=2, lookahead=1)
    scene.propose(0)
    scene.wait(1, 0)
    return scene


def _tuner_behind() -> Scene:
    scene = Scene(slots=1)
    while scene.state.open:
        (number,) = scene.state.open
        scene.propose(number)
        scene.run(number)
    return scene


def _worker_full() -> Scene:
    scene = Scene(slots=2, workers=1)
    scene.propose(0)
    scene.propose(1)
    return scene


def _failing() -> Scene:
    scene = Scene(slots=2, trial_retries=0, max_failed_in_a_row=1)
    scene.propose(0)
    scene.propose(1)
    scene.say(e.AttemptEnded(TrialId(1), 1, EndReason.FAILED, 1, text="KeyError: 'x'"))
    return scene


def _disk_low() -> Scene:
    scene = Scene()
    scene.say(e.DiskLow("/data", 90 << 20, 500 << 20))
    return scene


def _worker_left_out() -> Scene:
    """Two trials fail on the other worker, and one goes well on ours in between."""
    scene = Scene(slots=2, workers=1, trial_retries=0, quarantine_after=1)
    scene.say(e.WorkerJoined(WorkerId("other"), 1))
    scene.propose(0)  # local
    scene.propose(1)  # other
    scene.exit(1, EndReason.FAILED)
    scene.propose(2)  # other
    scene.run(0)
    scene.exit(2, EndReason.FAILED)
    scene.propose(3)  # local
    scene.propose(4)  # would go to the other
    return scene


def _reserved() -> Cluster:
    lab = Cluster({"a": 8})
    running = [lab.submit(gpus=1) for _ in range(8)]
    lab.trial(lab.submit(gpus=8)).passed_over = PASSED_OVER
    lab.leave(running.pop())
    lab.submit(gpus=1)
    return lab


def _no_gpu() -> Cluster:
    lab = Cluster({"a": 2, "b": 1})
    lab.submit(gpus=1)
    lab.submit(gpus=1)
    lab.submit(gpus=2)
    return lab


def _gpu_in_trouble() -> Cluster:
    (gpu,) = gpus("a", 1)
    lab = Cluster({"a": Offer((replace(gpu, trouble="used by others"),))})
    lab.submit(gpus=1)
    return lab


def _not_said() -> Cluster:
    lab = Cluster({"a": None})
    lab.submit(gpus=1)
    return lab


def _no_cpu() -> Cluster:
    lab = Cluster({"a": Offer(cpus=4.0)})
    lab.submit(cpus=3)
    lab.submit(cpus=3)
    return lab


def _no_licence() -> Cluster:
    lab = Cluster({"a": Offer(custom=(("licence", 1.5),))})
    lab.submit(custom=(("licence", 1.0),))
    lab.submit(custom=(("licence", 1.0),))
    return lab


def _no_memory() -> Cluster:
    lab = Cluster({"a": Offer(memory_bytes=4 * GB)})
    lab.submit(memory_bytes=3 * GB)
    lab.submit(memory_bytes=3 * GB)
    return lab


def _full_of_gpus() -> Cluster:
    lab = Cluster({"a": 8}, each=1)
    lab.submit()
    lab.submit(gpus=1)
    return lab


def _domains(gpus: int, slots: int) -> tuple[Cluster, int]:
    lab = Cluster({}, workers=2)
    lab.join("a", gpus, slots, domain="x")
    parent = lab.submit()
    lab.leave(parent)
    return lab, parent


def _parents_slots() -> Cluster:
    lab, parent = _domains(0, 1)
    lab.submit()
    lab.join("b", 0, domain="y")
    lab.submit(parent=parent)
    return lab


def _parents_gpus() -> Cluster:
    lab, parent = _domains(1, 9)
    lab.submit(gpus=1)
    lab.join("b", 1, domain="y")
    lab.submit(gpus=1, parent=parent)
    return lab


def _parents_lost() -> Cluster:
    lab, parent = _domains(0, 1)
    lab.join("b", 0, domain="y")
    lab.say(e.WorkerLost(WorkerId("a"), "gone"))
    lab.submit(parent=parent)
    return lab


def _short_places() -> Cluster:
    lab = Cluster({}, workers=2, longest_trial_s=600.0)
    for name, left_s in (("a", 90.0), ("b", 300.0)):
        lab.join(name, Offer(ends_at=lab.now + 1.0 + left_s))
    lab.submit()
    return lab


SCENES: dict[Cause, tuple[Callable[[], Scene], str]] = {
    Cause.ALL_SLOTS_BUSY: (_busy, "all 1 slots are busy"),
    Cause.OVER: (_over, "the experiment is completed: the only trial is over"),
    Cause.TRIALS_FAIL: (
        _failing,
        r"draining \(1 trials failed in a row with: failed \(exit code 1\): KeyError: 'x'",
    ),
    Cause.DISK_LOW: (_disk_low, "no new trials: the disk of /data has 90 MB left"),
    Cause.WORKER_QUARANTINED: (_worker_left_out, "1 trial is queued: worker other is left out"),
    Cause.DRAINING: (_draining, r"draining \(Ctrl-C\): 1 trials still run"),
    Cause.STALLED: (
        _stalled,
        "nothing can move any more: request 0 stands still",
    ),
    Cause.TUNER_NOT_READY: (_host_away, "the tuner's process is starting"),
    Cause.WORKER_LOST: (_worker_away, "1 trial is queued, and no worker is there"),
    Cause.WORKER_WAITS: (
        _worker_waits,
        "1 trial is queued: worker local waits for its place since 3 min: Priority$",
    ),
    Cause.WORKER_SUSPECT: (
        _worker_silent,
        "1 trial is queued: worker local has been silent for 31 s",
    ),
    Cause.BACKOFF: (_backoff, "trial 0 starts its next attempt in 1 s"),
    Cause.ALL_PROPOSED: (_all_proposed, "all 1 trials were proposed"),
    Cause.NOT_NOW: (_not_now, "the tuner answered 'not now' to request 1"),
    Cause.ABANDONED: (_abandoned, "the last 32 requests failed with their parents"),
    Cause.BLOCKED: (_blocked, r"the last of 2 trials wait: request 1 waits for 0 \(running\)"),
    Cause.LOOKAHEAD_FULL: (_lookahead, "1 requests wait, as many as lookahead allows"),
    Cause.TUNER_BUSY: (Scene, "request 0 has been in generate_parameters for 0 s"),
    Cause.TUNER_BEHIND: (_tuner_behind, r"the tuner has \d+ results to take before more"),
    Cause.PLACE_ENDS: (
        _short_places,
        "1 trial is queued: the place of a ends in 88 s, and what begins there must have 600 s; "
        "and 1 more such places",
    ),
    Cause.RESERVED: (_reserved, "2 trials are queued: what is free on a is kept for trial 9"),
    Cause.NO_FREE_GPU: (_no_gpu, "1 trial is queued: trial 3 needs 2 GPUs"),
    Cause.NO_ROOM: (_no_cpu, "1 trial is queued: trial 2 needs 3 CPUs"),
    Cause.PARENTS_DOMAIN: (_parents_slots, "1 trial is queued: the weights of trial 1, from"),
    Cause.NO_FREE_SLOT: (_worker_full, "1 trial is queued, and every slot of a worker is taken$"),
}


@pytest.mark.parametrize(
    "scene, cause, sentence",
    [
        (_reserved, Cause.RESERVED, "what is free on a is kept for trial 9, which needs 8 GPUs"),
        (_no_gpu, Cause.NO_FREE_GPU, "trial 3 needs 2 GPUs (a: 1 of 2 GPUs free; b: 0 of"),
        (_gpu_in_trouble, Cause.NO_FREE_GPU, "(a: 0 of 1 GPUs free, 0: used by others)"),
        (_not_said, Cause.NO_FREE_GPU, "trial 1 needs 1 GPU (a: has not reported its resources)"),
        (_no_cpu, Cause.NO_ROOM, "trial 2 needs 3 CPUs (a: 1 of 4 CPUs free)"),
        (_no_licence, Cause.NO_ROOM, "trial 2 needs 1 licence (a: 0.5 of 1.5 licence free)"),
        (_no_memory, Cause.NO_ROOM, "trial 2 needs 3 GB of memory (a: 1 GB of memory free)"),
        (_full_of_gpus, Cause.NO_FREE_SLOT, "trial 2 needs 1 GPU (a: all slots taken)"),
        (
            _parents_slots,
            Cause.PARENTS_DOMAIN,
            "the weights of trial 1, from which trial 3 starts, are in the storage domain 'x', "
            "all of whose slots are taken",
        ),
        (
            _parents_gpus,
            Cause.PARENTS_DOMAIN,
            "are in the storage domain 'x', which has no place for 1 GPU",
        ),
        (_parents_lost, Cause.PARENTS_DOMAIN, "in the storage domain 'x', of which no worker is"),
    ],
)
def test_what_trials_with_needs_wait_for(
    scene: Callable[[], Cluster], cause: Cause, sentence: str
) -> None:
    state = scene().state
    told = why(state, state.now)
    assert told.cause is cause, told
    assert sentence in told.text
    assert told.text.startswith(("1 trial is queued: ", f"{len(state.queued)} trials are queued: "))


@pytest.mark.parametrize("cause", list(Cause), ids=lambda c: c.name)
def test_every_cause_has_a_scene_and_a_sentence(cause: Cause) -> None:
    scene, sentence = SCENES[cause]
    state = scene().state
    explanation = why(state, state.now)
    assert explanation.cause is cause
    assert re.match(sentence, explanation.text), explanation.text
    assert "\n" not in explanation.text


def test_a_tuner_that_is_not_there_yet_comes_before_a_full_disk() -> None:
    """Whoever starts a head in the background waits for the tuner to be built, or to fail."""
    scene = _host_away()
    scene.say(e.DiskLow("/data", 0, 1))
    assert why(scene.state, scene.state.now).cause is Cause.TUNER_NOT_READY
    scene.say(e.TrialSubmitted("{}"))
    assert why(scene.state, scene.state.now).cause is Cause.DISK_LOW


def test_a_retry_that_waits_for_another_worker_is_named() -> None:
    scene = Scene(slots=2, workers=1, trial_retries=1, quarantine_after=9, retry_backoff_s=0.0)
    other = WorkerId("other")
    scene.say(e.WorkerJoined(other, 1))
    for number in (0, 1, 2):
        scene.propose(number)
        if scene.trial(number).worker == other:
            scene.exit(number, EndReason.FAILED)
            scene.exit(number, EndReason.FAILED, 2)
    told = why(scene.state, scene.state.now)
    assert told.cause is Cause.NO_FREE_SLOT
    assert told.text.startswith("1 trial is queued, having failed on the worker that is free")


def test_an_experiment_that_is_over_says_why() -> None:
    scene = Scene(slots=1)
    scene.whole(0)
    scene.not_now(1)
    scene.not_now(1)  # asked before the result, and after it
    told = why(scene.state, scene.state.now)
    assert (told.cause, told.text) == (
        Cause.OVER,
        "the experiment is completed: the tuner has no more trials",
    )


def test_what_is_not_as_it_should_be_is_listed_though_all_slots_are_busy() -> None:
    scene = _busy()
    assert troubles(scene.state, scene.state.now) == []
    scene.say(e.DiskLow("/data", 0, 1 << 20), e.WorkerSuspect(HOST, 30.0))
    scene.say(e.WorkerJoined(WorkerId("b"), 1), e.WorkerJoined(WorkerId("c"), 1))
    scene.say(e.WorkerLost(WorkerId("b"), "gone"))
    health = scene.state.workers[WorkerId("c")].health
    health.quarantined_until = scene.state.now + 40.0
    disk, silent, lost, left_out = troubles(scene.state, scene.state.now)
    assert "the disk of /data has 0 MB left" in disk
    assert silent == "worker local has been silent for 33 s, nothing new goes there"
    assert lost == "worker b is not there (gone); it is being started"
    assert left_out == "worker c is left out for 40 s more, trials failed there"
    health.quarantined_until, health.on_probation = None, True
    assert "one attempt at a time" in troubles(scene.state, scene.state.now)[-1]


def test_devices_that_take_no_trials_are_listed() -> None:
    lab = _gpu_in_trouble()
    assert troubles(lab.state, lab.state.now) == [
        "worker a puts no trials on GPU 0: used by others"
    ]
    lab.say(e.WorkerLost(WorkerId("a"), "gone"))
    (lost,) = troubles(lab.state, lab.state.now)
    assert "is not there" in lost


def test_a_delivery_that_does_not_return_is_named() -> None:
    """As when the author's own lock is held by a request that waits for this very result."""
    scene = Scene(slots=2, max_trials=2)
    scene.propose(0)
    scene.wait(1, 0)
    scene.run(0)
    told = why(scene.state, scene.state.now + 60)
    assert told.cause is Cause.TUNER_BEHIND
    assert "taking the result of trial 0 for 60 s" in told.text
