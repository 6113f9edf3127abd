"""Files lie on the shared folder; no shell is opened on the wrong machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.platforms.given import Given
from dispatcher.platforms.ray import RAY
from dispatcher.platforms.ray.section import RayServiceConfig
from dispatcher.ports import AttemptFiles
from tests.support.workers import agent_config


def files(folder: Path, address: str) -> AttemptFiles:
    """Those of an attempt that has printed something."""
    section = RayServiceConfig.model_validate({"platform": "ray", "address": address})
    config = agent_config(folder, "ray-1")
    given = Given(
        *("ray-1", section, section, config, folder, None),
        lambda: pytest.fail("nothing is brought anywhere"),
        lambda: "",
    )
    there = given.home / "trials/3/1"
    there.mkdir(parents=True)
    (there / "stdout").write_text("begun\n")
    shown = RAY.files(given, 3, 1)
    assert shown is not None
    return shown


@pytest.mark.parametrize("address", ["10.1.2.3:6379", "ray://head:10001"])
def test_a_shell_on_another_machine_is_a_sentence(tmp_path: Path, address: str) -> None:
    """Mutation: a shell on this machine, where the trial never was."""
    shown = files(tmp_path, address)
    assert [each.path for each in shown.list(most=9).entries] == ["stdout"]
    piece = shown.read("stdout", 0, 99)
    assert piece is not None
    assert piece.data == b"begun\n"
    with pytest.raises(PermanentBackendError, match="no shell on a node of Ray") as caught:
        shown.shell(["true"], terminal=False)
    assert "/trials/3/1" in (caught.value.hint or "")


def test_where_all_nodes_are_this_machine_there_is_one(tmp_path: Path) -> None:
    assert files(tmp_path, "127.0.0.1:6379").shell(["true"], terminal=False) == 0
