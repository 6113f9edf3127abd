"""A digit classifier that ends when the test lets it: so many may, and the others wait."""

import os
import sys
import threading
from pathlib import Path

import trial_runtime as bq

sys.path.insert(0, os.environ["DIGITS_CODE"])
from digits_trial import main as train


def main(parameters):
    right = train(parameters)
    print("trained", flush=True)
    allowed = Path(os.environ["ALLOWED"])
    # Whichever come first: the order of their numbers is not that in which they run.
    while not any(takes(allowed, number) for number in range(int(allowed.read_text()) + 1)):
        threading.Event().wait(0.1)
    return right


def takes(allowed, number):
    """Whether this trial has one of the permits, perhaps by an attempt before."""
    permit, own = allowed.with_name(f"permit-{number}"), str(bq.trial_id())
    try:
        os.symlink(own, permit)
    except FileExistsError:
        return os.readlink(permit) == own
    return True
