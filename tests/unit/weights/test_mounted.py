"""What the kernel's table says about a mount, and how long readers wait for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trial_runtime.weights.storage import patience
from trial_runtime.weights.storage.mounted import Mount, mount_of
from trial_runtime.weights.storage.patience import STALE_TIMEOUT_S, Patience, bound_for, revalidate

_TABLE = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 0:40 / /mnt/w rw,nosuid - nfs4 server:/srv/w rw,vers=4.2,hard,timeo=600
31 21 0:41 / /mnt/slow rw - nfs4 server:/srv/s rw,acregmin=5,acregmax=200,acdirmax=90,soft
32 21 0:42 / /mnt/fresh rw - nfs4 server:/srv/f rw,noac,hard
33 30 8:2 / /mnt/w/local rw - xfs /dev/sdb rw
34 21 0:43 / /mnt/a\\040b rw - nfs server:/x rw,vers=3,actimeo=7,softerr
35 21 0:44 / /auto rw - autofs auto.master rw
36 21 0:45 / /auto rw - nfs4 server:/y rw,hard
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "mountinfo"
    path.write_text(_TABLE)
    return path


@pytest.mark.parametrize(
    "path, kind, shared, soft, cached_s",
    [
        ("/mnt/w/1", "nfs4", True, False, 60),
        ("/mnt/w", "nfs4", True, False, 60),
        ("/mnt/wide", "ext4", False, False, 0),
        ("/mnt/slow/1", "nfs4", True, True, 200),
        ("/mnt/fresh", "nfs4", True, False, 0),
        ("/mnt/w/local/1", "xfs", False, False, 0),
        ("/mnt/a b/1", "nfs", True, True, 7),
        ("/auto/1", "nfs4", True, False, 60),
    ],
)
def test_mounts(
    table: Path, path: str, kind: str, shared: bool, soft: bool, cached_s: float
) -> None:
    mount = mount_of(path, mountinfo=table)
    assert mount is not None
    assert (mount.kind, mount.shared, mount.soft) == (kind, shared, soft)
    assert mount.cached_s == cached_s


def test_without_a_table_nothing_is_known(tmp_path: Path) -> None:
    assert mount_of("/", mountinfo=tmp_path / "none") is None


@pytest.mark.parametrize(
    "timeout_s, options, bound_s",
    [
        (75.0, {}, 75.0),  # the default caches of 60 s, and a margin
        (75.0, {"acdirmax": "200"}, 215.0),
        (75.0, {"acregmax": "120", "acdirmax": "90"}, 135.0),
        (75.0, {"noac": ""}, 75.0),
        (300.0, {}, 300.0),  # whoever asked for more gets it
        (1.0, {"acdirmax": "200"}, 1.0),  # all trials on one host, which sees what it wrote
    ],
)
def test_the_bound_exceeds_what_a_client_may_cache(
    monkeypatch: pytest.MonkeyPatch, timeout_s: float, options: dict[str, str], bound_s: float
) -> None:
    monkeypatch.setattr(patience, "mount_of", lambda path: Mount("/w", "nfs4", options))
    assert bound_for(timeout_s, "/w") == bound_s
    assert STALE_TIMEOUT_S > 60


def test_a_shared_folder_is_asked_about_before_the_first_pause(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From the mount on, the highest first: a name that was missing hides all below it."""
    asked: list[str] = []
    monkeypatch.setattr(patience, "mount_of", lambda path: Mount(str(tmp_path), "nfs4", {}))
    monkeypatch.setattr(patience, "ask_server", asked.append)
    (tmp_path / "gen" / "1").mkdir(parents=True)
    path = str(tmp_path / "gen" / "1")
    pauses: list[float] = []
    looks = Patience(75.0, lambda: 0.0, pauses.append).looks(path)
    next(looks)
    assert asked == []
    next(looks)
    assert asked == [str(tmp_path), str(tmp_path / "gen"), path]
    assert pauses == []
    next(looks)
    assert pauses == [0.05]


def test_asking_about_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    revalidate(str(tmp_path / "a" / "b"), str(tmp_path))
    (tmp_path / "a").write_text("a file")
    revalidate(str(tmp_path / "a" / "b"), str(tmp_path))
    revalidate(str(tmp_path))
