"""One head an experiment, and each with a number above the one before."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from dispatcher.errors import ExperimentBusy, StoreError
from dispatcher.folders.names import LEADER_NAME
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
