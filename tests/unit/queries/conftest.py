"""An empty home, and the command line over it."""

from tests.unit.cli.conftest import bequeath, home

__all__ = ["bequeath", "home"]
