"""Experiment files, as the tests of our own have them."""

from __future__ import annotations

from tests.unit.experiment.conftest import _own_folder, config, errors_of, good

__all__ = ["_own_folder", "config", "errors_of", "good"]
