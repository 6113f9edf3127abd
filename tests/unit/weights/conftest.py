from __future__ import annotations

from pathlib import Path

import pytest

from trial_runtime.weights.storage import roots


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A weights root that this process was told about, forgotten afterwards."""
    folder = tmp_path / "weights"
    folder.mkdir()
    monkeypatch.setattr(roots, "_configured", roots.Roots(str(folder)))
    return folder
