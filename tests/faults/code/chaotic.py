"""What is run under chaos: the tuners and trials of :mod:`told`, at a walking pace."""

import time

from told import Remembering, Told, train  # noqa: F401 - the tuners are found here


def train_at_leisure(parameters):
    """Long enough that something happens while it runs."""
    time.sleep(0.02)
    train(parameters)
    time.sleep(0.02)
