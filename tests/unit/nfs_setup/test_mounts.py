"""Mounts are found by the longest point above a path, and their options judged."""

from pathlib import Path

import psutil
import pytest

from nfs_setup import Mount, advice_on, mount_of


def nfs(*options: str) -> Mount:
    return Mount("server:/export", "/share", "nfs4", options)


def test_the_nearest_mount_above_the_path_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    part = type(psutil.disk_partitions(all=True)[0])
    parts = [
        part("/dev/a", "/", "ext4", "rw"),
        part("server:/x", "/share", "nfs4", "rw,hard"),
        part("/dev/b", "/share2", "xfs", "rw"),
    ]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: parts)
    found = mount_of(Path("/share/not/there/yet"))
    assert found == Mount("server:/x", "/share", "nfs4", ("rw", "hard"))
    beside = mount_of(Path("/share3"))
    assert beside is not None
    assert beside.point == "/"


def test_this_machine_has_a_mount_for_its_root() -> None:
    assert mount_of(Path("/")) is not None


def test_a_plain_hard_nfs_mount_needs_no_advice() -> None:
    assert advice_on(nfs("rw", "hard", "vers=4.2")) == ()


@pytest.mark.parametrize(
    "options, level, word",
    [
        (("rw", "soft"), "trouble", "'soft'"),
        (("ro", "hard"), "trouble", "read-only"),
        (("rw", "hard", "actimeo=600"), "note", "up to 615 s"),
        (("rw", "hard", "noac"), "note", "'noac'"),
        (("rw", "hard", "vers=3"), "note", "version 3"),
    ],
)
def test_options_that_cost_something_are_named(
    options: tuple[str, ...], level: str, word: str
) -> None:
    (advice,) = advice_on(nfs(*options))
    assert advice.level == level
    assert word in advice.text


def test_memory_is_no_place_for_weights() -> None:
    (advice,) = advice_on(Mount("tmpfs", "/dev/shm", "tmpfs", ("rw",)))
    assert "memory" in advice.text
