"""What people read of a scheduler that could not be asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.loader import build_experiment
from dispatcher.findings import Finding
from dispatcher.platforms import inspecting


@pytest.mark.parametrize(
    "where, text",
    [("~/k:3:4", "~/k:3:4: holds no token"), ("local", "holds no token"), ("", "holds no token")],
)
def test_the_place_of_an_error_is_shown(
    where: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unasked:
        def inspect_for(self, section: object, experiment: object) -> Iterator[Finding]:
            raise PermanentBackendError("holds no token", where=where)

    def platform_of(section: object) -> Any:
        return Unasked()

    monkeypatch.setattr(inspecting, "platform_of", platform_of)
    config = build_experiment(
        {
            "experimentWorkingDirectory": str(tmp_path),
            "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
            "tuner": {"name": "Random"},
            "trialCommand": "true",
            "trialConcurrency": 1,
        }
    )
    (one,) = inspecting.inspect_services(config)
    assert (one.name, [each.text for each in one.findings]) == ("local", [text])
