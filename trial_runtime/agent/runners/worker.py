"""A warm worker: a process that runs functions of trials one after another."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from trial_runtime import session as sessions
from trial_runtime import trial_wire as wire
from trial_runtime.agent.processes.sweep import die_with_parent
from trial_runtime.agent.runners.calling import (
    Result,
    attempt_call,
    find,
    flush_streams,
    invoke,
    leave,
    preload,
    put_code_first,
)
from trial_runtime.agent.runners.settling import settle
from trial_runtime.failpoints import failpoint
from trial_runtime.link import AgentLink
from trial_runtime.metric import metric_text
from trial_runtime.session_file import MARKER_VARIABLE

WORKER_VARIABLE = "BEQUEATH_WORKER"


class WorkerFile(msgspec.Struct, frozen=True):
    """The configuration of a worker, in a file (0600) that its environment names."""

    address: str
    routing: str
    parent: int
    call: str
    code_directory: str
    preload: tuple[str, ...]

    def __repr__(self) -> str:
        return f"WorkerFile({self.call!r})"  # its secret is nobody's business


def main() -> None:
    """Run orders of the agent until ``Leave``; ends the process."""
    with open(os.environ.pop(WORKER_VARIABLE), "rb") as file:
        config = msgspec.json.decode(file.read(), type=WorkerFile)
    die_with_parent(config.parent)
    put_code_first(config.code_directory)
    link = AgentLink(config.address, config.routing)
    link.connect()
    # An import that fails fails each trial with its traceback, not the worker.
    imported = attempt_call(lambda: _import(config))
    while True:
        order = link.next_order()
        if type(order) is wire.Run:
            _run(link, order, imported)
        else:
            leave(0)


def _import(config: WorkerFile) -> Callable[..., Any]:
    preload(config.preload)
    return find(config.call)


def _run(link: AgentLink, order: wire.Run, imported: Result) -> None:
    file = order.session
    # No session file: processes that a function starts cannot speak for its attempt.
    os.environ[MARKER_VARIABLE] = order.marker
    settle(file)
    link.renew((file.trial, file.attempt))
    session = sessions.AgentSession(file, link)
    sessions.adopt(session)
    used = _cpu_s()
    result = imported
    if imported.code == 0:
        parameters = msgspec.json.decode(file.parameters)
        result = attempt_call(lambda: invoke(imported.value, parameters))
    final: str | None = None
    if result.code == 0 and result.value is not None and not session.final_reported:
        value, limit = result.value, file.max_metric_bytes
        result = attempt_call(lambda: metric_text(value, limit=limit))
        final = result.value
    if result.text:
        sys.stderr.write(result.text + "\n")
    failpoint("worker.function.returned")
    flush_streams()
    sessions.adopt(None)
    done = wire.Done(
        (file.trial, file.attempt),
        result.code,
        result.text[-4096:],
        _cpu_s() - used,
        result.out_of_memory,
        result.spent,
    )
    # Result and end in one frame: one turn of the agent's loop, one of the head's.
    link.post([done] if final is None or result.code else [wire.Final(final), done])


def _cpu_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + spent.ru_utime + spent.ru_stime
