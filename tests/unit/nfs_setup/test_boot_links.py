"""Links at boot are put back as they were, and those that others changed since are theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfs_setup.step_service import boot_links, difference, put_back
from tests.unit.nfs_setup.pretended import Pretended, tree


@pytest.fixture
def links(host: Pretended) -> Path:
    """A machine on which something starts at boot already."""
    levels = host.folder / "etc"
    (levels / "rcS.d").mkdir()
    (levels / "rcS.d/K01rpcbind").symlink_to("../init.d/rpcbind")
    (levels / "rc2.d/S01cron").symlink_to("../init.d/cron")
    return levels


def enable(levels: Path) -> None:
    """As Debian enables a service of early boot."""
    (levels / "rcS.d/K01rpcbind").rename(levels / "rcS.d/S01rpcbind")
    wants = levels / "systemd/system/sockets.target.wants"
    wants.mkdir()
    (wants / "rpcbind.socket").symlink_to("/lib/systemd/system/rpcbind.socket")


def test_renamed_and_new_links_and_folders_go_back(host: Pretended, links: Path) -> None:
    before, seen = boot_links(host), tree(host.folder)
    enable(links)
    changed = difference(before, boot_links(host))
    assert set(changed) == {
        "/etc/rcS.d/K01rpcbind",
        "/etc/rcS.d/S01rpcbind",
        "/etc/systemd/system/sockets.target.wants",
        "/etc/systemd/system/sockets.target.wants/rpcbind.socket",
    }
    put_back(host, changed)
    assert tree(host.folder) == seen
    put_back(host, changed)
    assert tree(host.folder) == seen


def test_what_others_changed_since_stays(host: Pretended, links: Path) -> None:
    before = boot_links(host)
    enable(links)
    changed = difference(before, boot_links(host))
    ours = links / "rcS.d/S01rpcbind"
    ours.unlink()
    ours.symlink_to("../init.d/another")
    theirs = links / "systemd/system/sockets.target.wants/theirs.socket"
    theirs.symlink_to("/lib/systemd/system/theirs.socket")
    put_back(host, changed)
    assert ours.readlink() == Path("../init.d/another")
    assert theirs.is_symlink()
    assert (links / "rcS.d/K01rpcbind").is_symlink()
    assert not (theirs.parent / "rpcbind.socket").is_symlink()


def test_a_link_that_was_taken_away_comes_back(host: Pretended, links: Path) -> None:
    before, seen = boot_links(host), tree(host.folder)
    (links / "rc2.d/S01cron").unlink()
    changed = difference(before, boot_links(host))
    put_back(host, changed)
    assert tree(host.folder) == seen
