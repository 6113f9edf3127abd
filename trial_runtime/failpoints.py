"""Failpoints: named places at which tests let a process of ours die, stop, wait or fail.

A failpoint stands between two durable steps. It does nothing unless the environment names it::

    BEQUEATH_FAILPOINTS="engine.batch.committed@3=kill,weights.manifest.written=raise:ENOSPC"

``@3`` means the third time a process comes by (the first, without it); ``@*`` means every
time. Actions: ``kill`` (SIGKILL to this process), ``stop`` (SIGSTOP), ``exit:N``
(``os._exit``), ``sleep:SECONDS``, ``raise:ERRNO`` (an ``OSError``, such as ENOSPC).

A process that is started again finds the same environment. Where
``BEQUEATH_FAILPOINTS_STRUCK`` names a folder, each part of the plan but ``@*`` strikes once
in all, and leaves a file of its own name there: the proof that it did.

:data:`NAMES` lists them; ``tests/arch`` compares it with the calls, and ``tests/faults``
kills a process at each.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

VARIABLE: Final = "BEQUEATH_FAILPOINTS"
STRUCK_VARIABLE: Final = "BEQUEATH_FAILPOINTS_STRUCK"

#: Every failpoint of the product: what has happened, and what has not.
NAMES: Final[dict[str, str]] = {
    # Laying an experiment down.
    "create.folder.made": "the experiment has a folder, and nothing is in it",
    "config.drafted": "the resolved file is on disk, not under its name",
    "create.config.written": "the resolved file is there, no journal",
    "create.journal.made": "the journal is there and has no row",
    "create.experiment.journalled": "all is there; its caller has no answer yet",
    # A head that begins.
    "leadership.lock.replaced": "the head before has lost its lock; nobody says that we lead",
    "leadership.lock.taken": "the lock is held; the newest epoch is still that of the head before",
    "leadership.draft.synced": "the new epoch is on disk, not under its name",
    "leadership.written": "the new epoch is on disk; the journal knows nothing of it",
    "head.epoch.journalled": "the journal knows the epoch; nobody can reach the head",
    "head.run_file.written": "clients find the head; no process was started",
    "head.outstanding.performed": "processes were started; the engine does not turn",
    "restore.draft.written": "the tuner's past is on disk, not under its name",
    "restore.file.written": "the tuner's past is there; its host was not started",
    "launch.tuner.spawned": "the tuner host's process is there; it has sent nothing",
    "launch.agent.spawned": "the agent's process is there; the next head cannot know of it",
    "launch.agent.recorded": "the agent's process is on record; it has sent nothing",
    "allocations.order.recorded": "an allocation is on record; its scheduler has no order",
    "allocations.order.taken": "a scheduler has answered an order; nobody has noted it",
    "allocations.order.noted": "that its scheduler has the order is on record; no agent was heard",
    # A head that leads.
    "engine.batch.applied": "a batch is in memory, not in the journal",
    "journal.batch.written": "a batch is written, not committed",
    "engine.batch.committed": "a batch is committed; nothing was sent, nothing done about it",
    "journal.snapshot.written": "a tuner's state is written, not committed",
    "compact.base.written": "a state to begin replays with is written, not committed",
    "compact.base.committed": "replays begin with it; all rows before it are still there",
    "compact.slice.written": "rows that no replay needs are removed, not committed",
    "compact.slice.committed": "some of these rows are gone, others are not",
    "engine.snapshot.kept": "a tuner's state is kept; the batch with it has not been acted upon",
    "engine.batch.acknowledged": "a batch is on disk and counts as acknowledged; no action left",
    "engine.tuner.told": "the tuner host has its actions of a batch, the agents have not",
    "engine.actions.sent": "all actions of a batch have left",
    "head.config.updated": "a changed setting is in the file, not in the journal",
    # A head that ends.
    "head.engine.over": "the last batch is committed; tuner host and agent still run",
    "head.tuner.closed": "the tuner host has ended; the agent still runs",
    "head.agent.closed": "all processes have ended; clients still find the head's file",
    "head.end.recorded": "all is done and recorded; the head's process is still there",
    # Retention.
    "keeper.removal.granted": "the journal says that weights are gone; nothing else does",
    "ledger.intent.written": "the intent to remove files is written, not committed",
    "keeper.removal.intended": "the intent is committed; all files are there",
    "weights.file.removed": "one of several files is gone",
    "keeper.files.removed": "the files are gone; the ledger says that they are about to go",
    "keeper.versions.listed": "folders of versions are known; nobody was asked which may go",
    "keeper.versions.granted": "the journal says that versions are gone; all files are there",
    "keeper.versions.removed": "files of versions are gone; the keeper has not noted it",
    # A sink.
    "sink.flushed": "a tracker has what was new; the cursor does not say so",
    "sink.cursor.written": "the cursor says what the tracker has; nothing more was given",
    # The tuner host.
    "host.restored": "the tuner is where it was; it has not reported that it is ready",
    "host.request.returned": "generate_parameters has returned; nothing was sent",
    "host.result.returned": "receive_trial_result has returned, trial_end was not called",
    "host.end.returned": "trial_end has returned; gate shut, nothing was sent",
    "host.gate.opened": "the gate is open, children go on; the head does not know",
    "host.state.taken": "state() has returned; it was not sent",
    "host.words.gathered": "messages are encoded, not sent",
    # The agent.
    "agent.order.taken": "an order to start was read; nothing was done",
    "agent.parent.verified": "the parent's plain files are as announced; nothing was started",
    "agent.leftovers.set_aside": "what the attempt before left was renamed",
    "agent.room.made": "the save path is free; no process",
    "agent.session.written": "the session file is there, no process",
    "agent.worker.told": "a warm worker's file is there, no worker",
    "agent.process.started": "the attempt's process is there; nothing was sent",
    "agent.folder.made": "the attempt's folder is there; what it printed is still in the pipe",
    "agent.exit.seen": "the attempt's process is gone; nothing was noted",
    "agent.files.digested": "plain weights are digested; the end was not reported",
    "agent.end.noted": "the end is in the outbox, not sent",
    "agent.words.sent": "messages have left; whether they arrive is not known",
    "agent.spool.written": "messages are in the spool, which is not synced",
    "agent.spool.synced": "messages are in the spool",
    "agent.spool.obsolete": "all messages in the spool are acknowledged; it is still there",
    # Weights roots that are no folder.
    "agent.parent.pulled": "the parent's weights are here; nothing was started",
    "agent.version.pushed": "a version is on the remote root; the head was not asked",
    "agent.newest.pulled": "a version of another is here; the trial was not notified",
    "remote.objects.uploaded": "the data of weights is on the remote root, no record",
    "remote.record.uploaded": "weights are on the remote root; the head was not notified",
    "remote.file.removed": "one of several files on the remote root is gone",
    # The trial.
    "weights.data.written": "tensors are written under a temporary name",
    "weights.data.synced": "tensors are on disk under a temporary name",
    "weights.data.renamed": "tensors are on disk, no manifest",
    "weights.manifest.written": "the manifest is written under a temporary name",
    "weights.manifest.synced": "the manifest is on disk under a temporary name",
    "weights.manifest.renamed": "the weights are published; nothing was sent",
    "weights.cache.fetched": "a file is copied to the host's cache, not under its name",
    "store.version.written": "a version is on disk; it was not offered",
    "store.offer.answered": "a version was accepted or refused; its trial does not know",
    "store.state.merged": "what others published is merged in; the outcome is not written",
    "trial.weights.announced": "the agent knows the weights' digest",
    "trial.final.reported": "the agent has the final result; the trial goes on",
    "worker.function.returned": "a warm worker's function has returned; nothing was sent",
    "trial.leaving": "the trial has nothing more to report; its process is still there",
}


class _Plan:
    """The actions that the environment asks for, counted down."""

    def __init__(self, text: str, *, struck: str | None = None) -> None:
        self._due: dict[str, list[tuple[int | None, str, str]]] = {}
        self._seen: dict[str, int] = {}
        self._struck = struck
        for part in filter(None, (one.strip() for one in text.split(","))):
            place, _, action = part.partition("=")
            name, _, hit = place.partition("@")
            if not action:
                raise ValueError(f"{VARIABLE}: {part!r} names no action")
            if name not in NAMES:
                raise ValueError(f"{VARIABLE}: there is no failpoint {name!r}")
            number = None if hit == "*" else int(hit or 1)
            self._due.setdefault(name, []).append((number, action, place))

    def reach(self, name: str) -> None:
        """Strike, if an action is due at this visit."""
        if name not in self._due:
            return
        seen = self._seen[name] = self._seen.get(name, 0) + 1
        for number, action, place in self._due[name]:
            if number is None or (number == seen and self._first(place)):
                _strike(name, action)

    def _first(self, place: str) -> bool:
        """Whether no process has struck here before; leaves a file for those that come later."""
        if self._struck is None:
            return True
        path = os.path.join(self._struck, place)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return False
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        return True


def _strike(name: str, action: str) -> None:
    kind, _, value = action.partition(":")
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif kind == "exit":
        os._exit(int(value or 1))
    elif kind == "sleep":
        time.sleep(float(value))
    elif kind == "raise":
        number = getattr(errno, value)
        raise OSError(number, f"{os.strerror(number)} (failpoint {name})")
    else:
        raise ValueError(f"{VARIABLE}: unknown action {action!r} for {name}")


def _plan_of(environment: os._Environ[str]) -> _Plan | None:
    text = environment.get(VARIABLE)
    return _Plan(text, struck=environment.get(STRUCK_VARIABLE)) if text else None


_plan = _plan_of(os.environ)


def failpoint(name: str) -> None:
    """Mark a step. Costs nothing, and does nothing, unless a test asks for it."""
    if _plan is not None:
        _plan.reach(name)


@contextmanager
def planned(text: str, *, struck: str | None = None) -> Iterator[None]:
    """Follow another plan inside, in this process, and none of the environment's.

    Args:
        text: the plan, as the variable has it; an empty one strikes nowhere.
        struck: the folder of the marks; None: no other process counts.

    Raises:
        ValueError: the plan makes no sense.
    """
    global _plan
    before, _plan = _plan, _Plan(text, struck=struck) if text else None
    try:
        yield
    finally:
        _plan = before


@contextmanager
def out_of_reach() -> Iterator[None]:
    """Switch failpoints off inside, neither striking nor counting: for rehearsed steps."""
    with planned(""):
        yield
