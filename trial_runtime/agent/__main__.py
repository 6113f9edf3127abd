"""``python -m trial_runtime.agent CONFIGFILE``."""

from __future__ import annotations

import logging
import sys
import time

from trial_runtime.agent.agent import Agent
from trial_runtime.agent.config import read_config


def main() -> int:
    """Run an agent until it is over."""
    logging.Formatter.converter = time.gmtime
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
