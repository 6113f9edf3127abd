"""Pretended machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.nfs_setup.pretended import Pretended


@pytest.fixture
def host(tmp_path: Path) -> Pretended:
    """Debian, without systemd."""
    return Pretended(tmp_path)


@pytest.fixture
def redhat(tmp_path: Path) -> Pretended:
    """Rocky Linux, with systemd: planned here and not run for real."""
    return Pretended(tmp_path, system="redhat")
