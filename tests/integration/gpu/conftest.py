"""GPUs that are not there, for agents and experiments that are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.agent.conftest import head_with as head_with
from tests.integration.experiment.conftest import lab as lab
from tests.support.fake_nvml import FakeDriver


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> FakeDriver:
    """Compiled once."""
    return FakeDriver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def driver(library: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """For processes that this test starts; none of ours must see that of another machine."""
    for name, value in library.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    yield library
    library.unload()


@pytest.fixture
def trial_code() -> Path:
    """The folder of the trials here."""
    return Path(__file__).parent / "code"
