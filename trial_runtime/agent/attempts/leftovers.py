"""Leftovers of attempts: processes that outlive them, and their weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.processes import sweep
from trial_runtime.agent.runners.runner import Runner

if TYPE_CHECKING:
    from trial_runtime.agent.remote_weights import RemoteWeights
    from trial_runtime.weights.read.plain import PublishedDigest


def sweep_behind(runner: Runner, attempt: Attempt) -> None:
    """Kill what an attempt left behind, until nothing new turns up."""
    path = attempt.session_path
    sweep.sweep_where(runner.own_pids(), lambda pid: sweep.belongs(pid, path, attempt.pid))


def sweep_strays(runner: Runner, running: Iterable[Attempt]) -> None:
    """Kill the leftovers of attempts that are over.

    Processes without a known attempt are killed while no attempt runs.
    """
    live = {each.session_path for each in running}

    def stray(pid: int) -> bool:
        return not live or sweep.session_of(pid) not in live | {None, ""}

    sweep.sweep_where(runner.own_pids(), stray)


def weights_left_by(attempt: Attempt, remote: RemoteWeights | None) -> PublishedDigest | None:
    """The weights at the save path that the head does not know of; None if it knows them.

    Blocks on the disk, and on a remote root, where they are copied to. A process may be ended
    between a save that replaced the announced weights and the announcement of it: then the newer
    weights count, since there are no others.

    Raises:
        WeightsError: there is nothing complete, or another attempt's; or the remote root does not
            take it.
        OSError: it cannot be read.
    """
    from trial_runtime.weights.read.plain import published_digest, saved_again

    path, root = attempt.session.save_path, attempt.session.weights_root
    assert path is not None, "asked for attempts that save"
    writer = f"{attempt.trial}.{attempt.number}"
    announced = attempt.published
    later = None
    if announced is not None and announced.kind == "bequeath":
        later = saved_again(path, announced.digest, root=root, writer=writer)
    if remote is not None:
        newest = later or announced
        return remote.publish(attempt.start, newest.digest if newest is not None else None)
    return later if announced is not None else published_digest(path, root=root, writer=writer)
