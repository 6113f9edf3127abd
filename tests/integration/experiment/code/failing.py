"""Trials that fail in the ways that a policy is there for."""

import os

from tests.support import hold


def missing_package(parameters):
    """As where the environment of the trials lacks a package."""
    print("loading the data")
    import a_package_that_nobody_has  # noqa: F401


def every_other(parameters):
    """Half of the search space does not fit into memory."""
    from trial_runtime import trial_id

    if trial_id() % 2:
        raise MemoryError("a layer too many")
    return 1.0


def too_long_at_first(parameters):
    """The first attempt hangs, the second does not."""
    first = os.path.join(os.environ["SCRATCH"], "first")
    if not os.path.exists(first):
        open(first, "w").close()
        hold.for_ever()
    return 1.0


def fills_the_disk(parameters):
    """The first trial takes all room on the disk of the weights, until somebody makes some."""
    from trial_runtime import trial_id

    ballast = os.environ["BALLAST"]
    if trial_id() == 0:
        with open(ballast, "wb") as file:
            file.write(b"x" * int(os.environ["BALLAST_BYTES"]))
        hold.until(lambda: not os.path.exists(ballast))
    hold.pace(0.1)
    return 1.0
