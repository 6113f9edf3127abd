"""``python -m trial_runtime.agent CONFIGFILE``."""

from __future__ import annotations

import logging
import sys
import time

from trial_runtime.agent.agent import Agent
from trial_runtime.agent.config import ON_RECORD, read_config


def main() -> int:
    """Run an agent until it is over."""
    logging.Formatter.converter = time.gmtime
    if ON_RECORD in sys.argv[2:] and not _on_record():
        return 0
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s",
        datefmt="%Y-%m-%dT%H:%M:%S",
    )
    Agent(read_config(sys.argv[1])).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
