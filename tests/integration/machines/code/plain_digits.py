"""The digits of tests/system/nfs/digits; where a share has a place for it, founders wait for a
file, so that all machines have some of them."""

import os
import time

import digits_trial

digits_trial.wait_for_another_host = lambda _folder: None


def main(parameters):
    go = os.environ["GO"]
    until = time.monotonic() + 600
    while os.path.isdir(os.path.dirname(go)) and not os.path.exists(go):
        assert time.monotonic() < until
        time.sleep(0.02)
    return digits_trial.main(parameters)
