from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trial_runtime.weights.storage import roots


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A weights root that this process was told about, forgotten afterwards."""
    folder = tmp_path / "weights"
    folder.mkdir()
    roots.configure(root=str(folder))
    yield folder
    roots.forget()
