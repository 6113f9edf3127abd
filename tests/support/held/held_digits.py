"""A digit classifier that ends when the test lets it: trials beyond a number wait."""

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
    while bq.trial_id() > int(Path(os.environ["ALLOWED"]).read_text()):
        threading.Event().wait(0.1)
    return right
