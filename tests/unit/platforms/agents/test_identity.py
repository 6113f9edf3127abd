"""What a later head finds of an agent, also after the power was cut."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from dispatcher.platforms.agents.identity import agent_routing_id
from trial_runtime.agent.processes.record import AgentRecord, is_running, record_of


def test_a_process_of_the_machines_life_before_is_not_taken_for_ours() -> None:
    """After a power cut the same number may start at the same moment of the boot."""
    found = record_of(os.getpid())
    assert is_running(found)
    assert not is_running(replace(found, boot="another"))
    assert not is_running(replace(found, started="1"))


def test_a_record_of_an_older_version_is_believed() -> None:
    now = record_of(os.getpid())
    assert is_running(AgentRecord(now.pid, now.started))


@pytest.mark.parametrize("left", [b"", b"agent:local:", b"\xff\xfe", b"another"])
def test_a_name_that_a_power_cut_has_emptied_is_made_anew(tmp_path: Path, left: bytes) -> None:
    (tmp_path / "agent-local.id").write_bytes(left)
    name = agent_routing_id(tmp_path, "local")
    assert name.startswith("agent:local:")
    assert len(name) > 40
    assert agent_routing_id(tmp_path, "local") == name


def test_the_name_is_on_the_disk_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []

    def note(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_file():
            synced.append(path.read_bytes())

    monkeypatch.setattr(os, "fsync", note)
    assert synced == []
    name = agent_routing_id(tmp_path, "local")
    assert synced == [name.encode()]
