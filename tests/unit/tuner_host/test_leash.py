"""When a tuner host may go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.folders.names import LEADER_NAME
from dispatcher.store.leadership import Leadership
from dispatcher.tuner_host import parent_pipe


def test_it_ends_when_a_later_head_leads(tmp_path: Path) -> None:
    """By what heads write, read without their code. Mutation: ``>=``, or never."""
    file = str(tmp_path / LEADER_NAME)
    with Leadership.acquire(tmp_path) as lead:
        assert not parent_pipe.is_superseded(file, lead.epoch)
    with Leadership.acquire(tmp_path) as next_lead:
        assert parent_pipe.is_superseded(file, lead.epoch)
        assert not parent_pipe.is_superseded(file, next_lead.epoch)


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"epoch": null}'])
def test_a_file_that_makes_no_sense_ends_nothing(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / LEADER_NAME
    if content is not None:
        path.write_text(content)
    assert not parent_pipe.is_superseded(str(path), 1)
