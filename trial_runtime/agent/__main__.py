"""``python -m trial_runtime.agent CONFIGFILE``."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from pathlib import Path
from tempfile import gettempdir

from msgspec.structs import replace

from trial_runtime.agent.agent import Agent
from trial_runtime.agent.base.own_log import OwnLog
from trial_runtime.agent.config import ON_RECORD, read_config
from trial_runtime.run_folder import run_folder_below


def main() -> int:
    """Run an agent until it is over."""
    if ON_RECORD in sys.argv[2:] and not _on_record():
        return 0
    config = read_config(sys.argv[1])
    folder = Path(config.experiment_folder)
    (folder / "logs").mkdir(
        mode=0o700, parents=True, exist_ok=True
    )  # a scheduler starts us, and nobody else
    if not config.run_folder:
        config = replace(config, run_folder=str(run_folder_below(Path(gettempdir()), folder)))
    log = OwnLog(folder / "logs" / "agent.log")
    logging.basicConfig(level=logging.INFO, handlers=[log])
    Agent(config, sys.argv[1]).run()
    # It holds a key of ours, and nobody else may be able to take it away: a head that is cut off
    # for good. A head that wants the next agent writes it anew.
    with contextlib.suppress(OSError):
        os.unlink(sys.argv[1])
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
