"""The places of the files of one attempt of a program."""

from __future__ import annotations

import os

from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.config import MetricsSpec


def own_folder(attempt: Attempt) -> str:
    """The folder for files of the attempt's own; its working directory, if that is its own."""
    return attempt.session.work_folder or os.path.join(attempt.session.folder, "work")


def metrics_path(metrics: MetricsSpec, attempt: Attempt) -> str:
    """The file that an attempt writes its metrics to; empty if it writes none.

    Of several nodes each has its own, as those of a share see the same folder.
    """
    if metrics.hypertune:
        rank = attempt.share.variables.get("RANK", "0")
        name = "output.metrics" if rank == "0" else f"output.metrics.rank{rank}"
        return os.path.join(attempt.session.folder, "hypertune", name)
    return os.path.join(own_folder(attempt), metrics.file) if metrics.file else ""
