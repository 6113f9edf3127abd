"""``python -m trial_runtime.agent CONFIGFILE``."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

from msgspec.structs import replace

from trial_runtime.agent.agent import Agent
from trial_runtime.agent.base.own_log import OwnLog
from trial_runtime.agent.base.start_lock import StartLock
from trial_runtime.agent.config import ON_RECORD, AgentConfig, read_config
from trial_runtime.errors import BequeathError
from trial_runtime.run_folder import run_folder_below

if TYPE_CHECKING:
    from trial_runtime.agent.nodes.meeting import Meeting

_SECOND = (
    "the agent of {} in {} runs already: somebody has started its allocation a second time. This "
    "one leaves, and has touched nothing. Switch restarts of your scheduler off\n"
)


def main() -> int:
    """Run an agent until it is over."""
    if ON_RECORD in sys.argv[2:] and not _on_record():
        return 0
    config = read_config(sys.argv[1])
    folder = Path(config.experiment_folder)
    start, several = _start_of(config), config.nodes > 1
    config = replace(config, nodes=config.nodes_now())
    meeting = None
    if several:
        from trial_runtime.agent.nodes.meeting import CannotMeet, Meeting

        meeting = Meeting(folder, start, config.nodes)
        try:
            rank = meeting.rank(config.rank_variable)
            if rank:
                return _follow(config, rank, meeting)
        except (CannotMeet, OSError) as error:
            sys.stderr.write(f"{error}\n")
            return 1
    lock = StartLock(folder, config.worker, start) if config.ticket else None
    if lock is not None and not lock.take():
        sys.stderr.write(_SECOND.format(config.worker, folder))  # the log is the other's
        return 1
    (folder / "logs").mkdir(
        mode=0o700, parents=True, exist_ok=True
    )  # a scheduler starts us, and nobody else
    if not config.run_folder:
        config = replace(config, run_folder=str(run_folder_below(Path(gettempdir()), folder)))
    log = OwnLog(folder / "logs" / "agent.log")
    logging.basicConfig(level=logging.INFO, handlers=[log])
    try:
        agent = Agent(config, sys.argv[1], meeting)
    except BequeathError as error:  # no address at which others could come
        sys.stderr.write(f"{error}\n")
        return 1
    agent.run()
    # It holds a key of ours, and nobody else may be able to take it away: a head that is cut off
    # for good. A head that wants the next agent writes it anew.
    with contextlib.suppress(OSError):
        os.unlink(sys.argv[1])
        if lock is not None:
            lock.remove()
    renewal = config.renewal
    return renewal.exit_code if renewal is not None and agent.taken_back else 0


def _start_of(config: AgentConfig) -> str:
    """A text for this start alone: its ticket, and how often its scheduler has lent it a place."""
    restarts = config.restarts()
    return f"{config.ticket}.{restarts}" if restarts else config.ticket


def _follow(config: AgentConfig, rank: int, meeting: Meeting) -> int:
    """Run a follower until it is over."""
    from trial_runtime.agent.nodes.follower import Follower
    from trial_runtime.agent.nodes.meeting import ADDRESS_VARIABLE, CannotMeet

    folder = Path(config.experiment_folder)
    leader = meeting.leader()
    (folder / "logs").mkdir(mode=0o700, parents=True, exist_ok=True)
    own = Path(config.run_folder or run_folder_below(Path(gettempdir()), folder))
    run = own / f"rank{rank}"
    run.mkdir(mode=0o700, exist_ok=True)
    log = logging.FileHandler(folder / "logs" / f"agent.rank{rank}.log")
    logging.basicConfig(level=logging.INFO, handlers=[log])
    follower = Follower(replace(config, run_folder=str(run)), rank, leader)
    follower.run()
    if not follower.was_heard:
        raise CannotMeet(
            f"rank 0 does not answer at {leader.address}. If that is no address of it that other "
            f"nodes reach, set {ADDRESS_VARIABLE} there"
        )
    return 0


def _on_record() -> bool:
    """Wait for the head's line; false if it died before it could write down that we exist."""
    line = os.read(0, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return bool(line)


if __name__ == "__main__":
    sys.exit(main())
