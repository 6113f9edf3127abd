"""Trials that want more memory than there is."""

import os
import resource

import numpy as np

import trial_runtime as bq

MB = 1 << 20


def eat(parameters):
    """In a control group that has little, until the kernel ends us; the next attempt fasts."""
    if bq.attempt() == 1:
        with open(os.path.join(os.environ["HUNGRY_GROUP"], "cgroup.procs"), "w") as file:
            file.write(str(os.getpid()))
        eaten = [np.ones(8 * MB) for _ in range(64)]
        return float(len(eaten))
    return 1.0


def ask(parameters):
    """For more than this process may have: Python says no, and nobody is killed."""
    if bq.attempt() == 1:
        resource.setrlimit(resource.RLIMIT_AS, (4096 * MB, resource.RLIM_INFINITY))
        np.ones(8192 * MB)
    return 1.0


if __name__ == "__main__":
    bq.report_final({"eat": eat, "ask": ask}[os.environ["HUNGRY_WAY"]]({}))
