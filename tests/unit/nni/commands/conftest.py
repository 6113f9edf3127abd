"""The command line, as its own tests have it."""

from __future__ import annotations

from tests.unit.cli.conftest import bequeath, evolved, home, over

__all__ = ["bequeath", "evolved", "home", "over"]
