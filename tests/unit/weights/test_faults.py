"""Each error of a file system has the behaviour that the table names, in every call."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trial_runtime import errors
from trial_runtime.errors import StorageDenied, StorageReadOnly, StorageStale, WeightsError
from trial_runtime.weights import load, save
from trial_runtime.weights.read.plain import digest_tree, published_digest, verify_tree
from trial_runtime.weights.storage import faults, publishing
from trial_runtime.weights.storage.faults import BEHAVIOURS, WINDOWS_S, Behaviour
from trial_runtime.weights.storage.mounted import Mount

#: What a person may read about each error, and how often a call is worth repeating.
TABLE = {
    "ESTALE": ("StorageStale", "export", True),
    "EIO": ("StorageError", "dmesg", True),
    "ETIMEDOUT": ("StorageAway", "hard", True),
    "ECONNREFUSED": ("StorageAway", "hard", True),
    "EACCES": ("StorageDenied", "root_squash", False),
    "EPERM": ("StorageDenied", "root_squash", False),
    "EROFS": ("StorageReadOnly", "read-only", False),
    "EDQUOT": ("QuotaExceeded", "quota", False),
    "ENOSPC": ("DiskFull", "weights gc", False),
}


@dataclass
class Time:
    """Passes only in pauses."""

    now: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def sleep(self, pause_s: float) -> None:
        self.pauses.append(pause_s)
        self.now += pause_s


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr(faults, "clock", lambda: found.now)
    monkeypatch.setattr(faults, "sleep", found.sleep)
    return found


class Failing:
    """A system call that fails so many times for files of a name, and then works."""

    def __init__(self, call: str, code: str, part: str, times: int) -> None:
        self.call = call
        self.left = times
        self._code = getattr(errno, code)
        self._part = part
        self._real: Callable[..., Any] = getattr(os, call)

    def __call__(self, target: Any, *rest: Any, **more: Any) -> Any:
        name = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else str(target)
        if self.left and self._part in name:
            self.left -= 1
            raise OSError(self._code, os.strerror(self._code))
        return self._real(target, *rest, **more)


def fail(
    monkeypatch: pytest.MonkeyPatch, call: str, code: str, part: str, times: int = 1 << 30
) -> Failing:
    failing = Failing(call, code, part, times)
    monkeypatch.setattr(os, call, failing)
    return failing


def test_the_table_names_every_behaviour_and_every_error_of_the_issue() -> None:
    assert {getattr(errno, code) for code in TABLE} <= BEHAVIOURS.keys()
    assert set(BEHAVIOURS.values()) == set(Behaviour)
    assert WINDOWS_S[Behaviour.AWAY] > 60, "a server may be away for a minute behind a soft mount"


@pytest.mark.parametrize("call", ["pwrite", "fsync", "rename"])
@pytest.mark.parametrize("code", TABLE)
def test_a_save_that_goes_on_failing_is_told_why(
    root: Path, monkeypatch: pytest.MonkeyPatch, passing: Time, call: str, code: str
) -> None:
    name, advice, again = TABLE[code]
    before = save({"w": np.ones(3)}, root / "1")
    fail(monkeypatch, call, code, "weights-")
    with pytest.raises(getattr(errors, name)) as caught:
        save({"w": np.zeros(9)}, root / "1")
    monkeypatch.undo()
    assert type(caught.value).__name__ == name
    assert caught.value.errno == getattr(errno, code)
    assert advice in str(caught.value)
    assert bool(passing.pauses) == again
    assert passing.now == WINDOWS_S.get(BEHAVIOURS[getattr(errno, code)], 0.0)
    assert load(root / "1", digest=before.digest)["w"].sum() == 3, "what was there is there"
    assert not [n for n in os.listdir(root / "1") if n.startswith(".tmp-")]


@pytest.mark.parametrize("call", ["pwrite", "fsync", "rename"])
@pytest.mark.parametrize("part", ["weights-", "manifest.json"])
@pytest.mark.parametrize("code", [code for code, (_, _, again) in TABLE.items() if again])
def test_a_save_that_stumbles_is_done_again(
    root: Path, monkeypatch: pytest.MonkeyPatch, passing: Time, call: str, part: str, code: str
) -> None:
    stumbling = fail(monkeypatch, call, code, part, 3)
    done = save({"w": np.arange(9.0)}, root / "1")
    assert stumbling.left == 0
    monkeypatch.undo()
    assert load(root / "1", digest=done.digest)["w"].tolist() == list(range(9))
    assert len(os.listdir(root / "1")) == 2, "nothing of the tries before is left"


def test_what_was_not_made_durable_is_written_again(
    root: Path, monkeypatch: pytest.MonkeyPatch, passing: Time
) -> None:
    """A kernel forgets what a failed fsync was for; asking it again would say all is well."""
    written: list[str] = []
    real = os.pwrite
    monkeypatch.setattr(
        publishing.os, "pwrite", lambda fd, *rest: (written.append(""), real(fd, *rest))[1]
    )
    fail(monkeypatch, "fsync", "EIO", "weights-", 1)
    save({"w": np.ones(9)}, root / "1")
    assert len(written) == 5  # tensor and header, twice, and the manifest


def test_a_manifest_that_is_published_keeps_its_file_whatever_fails_then(
    root: Path, monkeypatch: pytest.MonkeyPatch, passing: Time
) -> None:
    real = publishing.confined.sync
    calls: list[int] = []

    def sync(at: int) -> None:
        calls.append(at)
        if len(calls) > 1:  # the first makes the data file durable
            raise OSError(errno.EIO, "Input/output error")
        real(at)

    (root / "1").mkdir()
    monkeypatch.setattr(publishing.confined, "sync", sync)
    monkeypatch.setitem(WINDOWS_S, Behaviour.RETRY, 0.0)  # type: ignore[arg-type]
    with pytest.raises(errors.StorageError):
        save({"w": np.ones(9)}, root / "1")
    monkeypatch.undo()
    assert load(root / "1")["w"].sum() == 9


def test_a_rename_that_a_crashed_server_had_done_counts(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer was lost with the server, the client asks again, and there is no such file."""
    real = os.rename

    def rename(source: str, target: str, **at: int) -> None:
        real(source, target, **at)
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(os, "rename", rename)
    done = save({"w": np.ones(9)}, root / "1")
    monkeypatch.undo()
    assert load(root / "1", digest=done.digest)["w"].sum() == 9


@pytest.mark.parametrize("part", ["manifest.json", "weights-"])
@pytest.mark.parametrize("code", [c for c in TABLE if c not in ("EROFS", "EDQUOT", "ENOSPC")])
def test_a_load_that_fails_is_told_why_or_done_again(
    root: Path, monkeypatch: pytest.MonkeyPatch, passing: Time, part: str, code: str
) -> None:
    name, advice, again = TABLE[code]
    done = save({"w": np.ones(9)}, root / "1")
    fail(monkeypatch, "open", code, part)
    with pytest.raises(WeightsError) as caught:
        load(root / "1", digest=done.digest, stale_timeout_s=0.0)
    assert type(caught.value).__name__ == name
    assert advice in str(caught.value)
    monkeypatch.undo()
    if again:
        monkeypatch.setattr(faults, "sleep", passing.sleep)
        stumbling = fail(monkeypatch, "open", code, part, 2)
        assert load(root / "1", digest=done.digest)["w"].sum() == 9
        assert stumbling.left == 0


def test_a_stale_handle_does_not_mean_that_there_is_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, passing: Time
) -> None:
    """Else a save would write over a published one, and a sweep miss what it refers to."""
    save({"w": np.ones(9)}, root / "1", writer="7.1")
    fail(monkeypatch, "open", "ESTALE", "manifest.json")
    for call in (
        lambda: save({"w": np.zeros(9)}, root / "1", writer="7.2"),
        lambda: load(root / "1"),
        lambda: published_digest(str(root / "1"), root=str(root)),
    ):
        with pytest.raises(StorageStale):
            call()


@pytest.mark.parametrize("code", ["ESTALE", "EIO", "EACCES"])
def test_plain_files(root: Path, monkeypatch: pytest.MonkeyPatch, passing: Time, code: str) -> None:
    name, _, again = TABLE[code]
    (root / "1.pt").write_bytes(b"weights")
    told = digest_tree(str(root / "1.pt"))
    fail(monkeypatch, "open", code, "1.pt")
    expected = "StaleWeights" if code == "ESTALE" else name
    with pytest.raises(WeightsError) as caught:
        verify_tree(str(root / "1.pt"), told.digest, stale_timeout_s=0.0)
    assert type(caught.value).__name__ == expected
    monkeypatch.undo()
    if again:
        monkeypatch.setattr(faults, "sleep", passing.sleep)
        fail(monkeypatch, "open", code, "1.pt", 2)
        assert verify_tree(str(root / "1.pt"), told.digest).nbytes == 7


def test_behind_a_soft_mount_an_error_of_a_disk_may_be_a_server_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fault = OSError(errno.EIO, "Input/output error")
    assert faults.behaviour_of(fault, "/w") is Behaviour.RETRY
    monkeypatch.setattr(faults, "mount_of", lambda path: Mount("/w", "nfs4", {"soft": ""}))
    assert faults.behaviour_of(fault, "/w") is Behaviour.AWAY


def test_other_errors_pass_through(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail(monkeypatch, "pwrite", "EINVAL", "weights-")
    with pytest.raises(OSError, match="Invalid argument"):
        save({"w": np.ones(3)}, root / "1")


def test_by_failpoints(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As processes of tests inject them."""
    from trial_runtime import failpoints

    for code, kind in (("EROFS", StorageReadOnly), ("EACCES", StorageDenied)):
        plan = f"weights.data.written=raise:{code}"
        with failpoints.planned(plan), pytest.raises(kind):
            save({"w": np.ones(3)}, root / "1")
