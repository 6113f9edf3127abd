"""A store on a network file system is refused, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.errors import StoreError
from dispatcher.store import SqliteJournal
from dispatcher.store import filesystem as fs

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /home rw - nfs4 server:/home rw,vers=4.2
31 30 0:26 / /home/scratch rw - xfs /dev/vdb rw
32 22 0:27 / /mnt/with\\040space rw - fuse.sshfs me@host: rw
33 22 0:28 / /home2 rw - tmpfs tmpfs rw
34 33 0:29 / /home2 rw - cifs //server/share rw
broken line
"""


@pytest.mark.parametrize(
    "path, kind",
    [
        ("/", "ext4"),
        ("/work", "ext4"),
        ("/home/me/experiments", "nfs4"),
        ("/home/scratch/x", "xfs"),
        ("/homeless", "ext4"),
        ("/mnt/with space/x", "fuse.sshfs"),
        ("/home2/x", "cifs"),
    ],
)
def test_the_nearest_mount_counts(path: str, kind: str) -> None:
    assert fs.type_of_mount(path, MOUNTS.splitlines()) == kind


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "9p", "fuse.sshfs", "ceph", "LUSTRE"])
def test_network_kinds(kind: str) -> None:
    assert fs.is_network(kind)


@pytest.mark.parametrize(
    "kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuse", "fuse.ntfs-3g"]
)
def test_local_kinds(kind: str) -> None:
    assert not fs.is_network(kind)


@pytest.fixture
def on_nfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    listing = tmp_path / "mountinfo"
    listing.write_text(f"1 0 0:1 / {tmp_path} rw - nfs4 server:/x rw\n")
    monkeypatch.setattr(fs, "MOUNTINFO", listing)
    monkeypatch.setattr(fs.filesystem_type, "__kwdefaults__", {"mountinfo": listing})
    monkeypatch.setattr(
        fs.refuse_network_filesystem, "__kwdefaults__", {"allow": None, "mountinfo": listing}
    )
    return tmp_path


def test_opening_there_is_refused(on_nfs: Path) -> None:
    with pytest.raises(StoreError, match=r"network file system \(nfs4\)") as caught:
        SqliteJournal.open(on_nfs / "journal.sqlite")
    assert "experimentWorkingDirectory" in caught.value.hint
    assert not (on_nfs / "journal.sqlite").exists()


def test_who_knows_better_may(on_nfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SqliteJournal.open(on_nfs / "a.sqlite", allow_network=True).close()
    monkeypatch.setenv(fs.OVERRIDE, "1")
    SqliteJournal.open(on_nfs / "b.sqlite").close()


def test_where_nothing_is_known_nothing_is_refused(tmp_path: Path) -> None:
    assert fs.filesystem_type(tmp_path, mountinfo=tmp_path / "none") is None
    fs.refuse_network_filesystem(tmp_path, mountinfo=tmp_path / "none")
