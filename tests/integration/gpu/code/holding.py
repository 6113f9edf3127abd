"""Trials that say which devices they hold, and hold them until they are let go."""

from __future__ import annotations

import os
from typing import Any

import trial_runtime as t
from tests.support.hold import until


def hold(parameters: dict[str, Any]) -> float:
    visible = os.environ["CUDA_VISIBLE_DEVICES"]
    assert visible.split(",") == list(t.devices())
    t.report_intermediate({"default": 0.0, "devices": visible, "pid": os.getpid()})
    folder = parameters["gates"]
    until(lambda: any(os.path.exists(f"{folder}/{name}") for name in ("all", visible)))
    return 1.0
