"""Bounds of requests to a head, known also to those who never send one: this imports nothing."""

from __future__ import annotations

from typing import Final

#: Longest grace that may be asked for (seconds): a day. Infinity would be no stop at all.
MAX_GRACE_S: Final = 86_400.0
