"""Trials that take their time."""

import os
import time


def until_told(parameters):
    """Until a file is there."""
    while not os.path.exists(os.environ["GO"]):
        time.sleep(0.2)
    return 1.0


def two_seconds(parameters):
    time.sleep(2.0)
    return 1.0
