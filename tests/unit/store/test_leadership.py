"""One head an experiment, and each with a number above the one before."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from dispatcher.errors import ExperimentBusy, StoreError
from dispatcher.folders.names import LEADER_NAME
from dispatcher.store import leadership
from dispatcher.store.leadership import Leadership, read_leader


def test_a_second_head_is_refused_and_told_who_leads(tmp_path: Path) -> None:
    with Leadership.acquire(tmp_path) as first:
        with pytest.raises(ExperimentBusy) as caught:
            Leadership.acquire(tmp_path)
        assert f"process {os.getpid()} on {socket.gethostname()}" in str(caught.value)
        assert read_leader(tmp_path) == first.leader
    Leadership.acquire(tmp_path).release()


def test_epochs_grow(tmp_path: Path) -> None:
    for epoch in (1, 2):
        with Leadership.acquire(tmp_path) as lead:
            assert lead.epoch == epoch


def test_the_journals_epoch_counts_when_the_file_is_lost_or_broken(tmp_path: Path) -> None:
    (tmp_path / LEADER_NAME).write_text("{")
    assert read_leader(tmp_path) is None
    with Leadership.acquire(tmp_path, last_epoch=7) as lead:
        assert lead.epoch == 8


def test_any_thread_may_release(tmp_path: Path) -> None:
    lead = Leadership.acquire(tmp_path)
    thread = threading.Thread(target=lead.release)
    thread.start()
    thread.join()
    lead.release()
    Leadership.acquire(tmp_path).release()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError):
        Leadership.acquire(tmp_path / "file" / "x")


def test_who_asks_in_passing_looks_at_the_lock_once_in_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: each question is a look; a lead that was lost comes back."""
    now, looks = [100.0], 0
    ours = Leadership.acquire(tmp_path)
    monkeypatch.setattr(leadership, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def holds(self: Leadership) -> bool:
        nonlocal looks
        looks += 1
        return now[0] < 200.0

    monkeypatch.setattr(Leadership, "holds", property(holds))
    assert all(ours.held_lately() for _ in range(1_000))
    assert looks == 1
    now[0] = 250.0
    assert not ours.held_lately(), "a moment later it is known"
    now[0] = 150.0
    assert not ours.held_lately()
    assert looks == 2
    ours.release()
