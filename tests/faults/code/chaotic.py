"""What is run under chaos: the tuners and trials of :mod:`told`, at a walking pace."""

from told import Remembering, Told, train  # noqa: F401 - the tuners are found here

from tests.support import hold


def train_at_leisure(parameters):
    """Long enough that something happens while it runs."""
    hold.pace()
    train(parameters)
    hold.pace()
