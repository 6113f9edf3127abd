"""The worker that tests of one agent are about."""

from __future__ import annotations

from trial_runtime.facts import WorkerId

LOCAL = WorkerId("local")
