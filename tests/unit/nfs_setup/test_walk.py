"""Root changes the folder that was named, whatever its owner puts in its place meanwhile."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nfs_setup import walk
from nfs_setup.errors import MachineRefuses, RequestRefused
from nfs_setup.local_host import LocalHost
from nfs_setup.request import ServerRequest
from nfs_setup.step_folder import Folder, undo_folder
from nfs_setup.verbs import perform
from tests.unit.nfs_setup.pretended import Pretended

ALICE = 65534
_EXCHANGE = 2

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be led astray so")


class Place:
    """``/alice`` is hers, what is beside it is root's: ``/program``, too."""

    def __init__(self, root: Path) -> None:
        self.root, self.host = str(root), LocalHost(str(root))
        self.alice, self.program = root / "alice", root / "program"
        self.alice.mkdir()
        self.program.write_text("#!/bin/true\n")
        self.program.chmod(0o755)
        os.chown(self.alice, ALICE, ALICE)

    def as_alice(self, do: Callable[[], object]) -> None:
        """In a process of hers."""
        pid = os.fork()
        if pid == 0:
            try:
                os.setgid(ALICE)
                os.setuid(ALICE)
                do()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0

    def mode(self) -> int:
        return stat.S_IMODE(self.program.stat().st_mode)


@pytest.fixture
def place() -> Iterator[Place]:
    """Not below pytest's own folders: these are 0700, also again when another pytest begins."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Place(Path(folder))


@needs_root
def test_a_folder_in_which_others_rename_is_refused(place: Place) -> None:
    share = place.alice / "share"
    share.mkdir()
    step = Folder("/alice/share", 0o755, 1234, 1234, adopt=True)
    with pytest.raises(MachineRefuses, match=f"/alice belongs to user {ALICE}"):
        step.apply(place.host)
    with pytest.raises(MachineRefuses, match="could put something else"):
        place.host.make_folder("/alice/new", 0o755)
    with pytest.raises(MachineRefuses, match="could put something else"):
        place.host.remove_folder("/alice/share")
    assert share.stat().st_uid == 0
    assert not (place.alice / "new").exists()
    assert "belongs to user" in place.host.why_movable("/alice/not/there/yet")
    assert place.host.why_movable("/alice") == ""


@needs_root
def test_a_folder_like_tmp_is_safe_for_what_root_has_in_it(place: Place) -> None:
    place.alice.chmod(0o1777)
    os.chown(place.alice, 0, 0)
    (place.alice / "roots").mkdir()
    (place.alice / "hers").mkdir()
    os.chown(place.alice / "hers", ALICE, ALICE)
    place.host.set_owner("/alice/roots", 0o750, 1234, 1234)
    assert (place.alice / "roots").stat().st_uid == 1234
    with pytest.raises(MachineRefuses, match="can be written to by others"):
        place.host.set_owner("/alice/hers", 0o750, 1234, 1234)
    with pytest.raises(MachineRefuses, match="can be written to by others"):
        place.host.make_folder("/alice/new", 0o750)


class _Trusting(LocalHost):
    """One that would work in her folder: what is left is that no link is followed."""

    _trusted = (0, ALICE)


@needs_root
@pytest.mark.parametrize("kind", [LocalHost, _Trusting])
def test_links_that_come_and_go_lead_nowhere(place: Place, kind: type[LocalHost]) -> None:
    share, link = place.alice / "share", place.alice / "link"
    place.as_alice(lambda: (share.mkdir(), link.symlink_to(place.program)))
    swap = ctypes.CDLL(None, use_errno=True).renameat2
    pid = os.fork()
    if pid == 0:
        os.setgid(ALICE)
        os.setuid(ALICE)
        while True:
            swap(-100, os.fsencode(share), -100, os.fsencode(link), _EXCHANGE)
    host, done = kind(place.root), 0
    try:
        for _ in range(2000):
            step = Folder("/alice/share", 0o4777, 1234, 1234, adopt=True)
            try:
                step.apply(host)
                undo_folder(host, None, {"path": "/alice/share", "was": [0o4777, ALICE, ALICE],  # type: ignore[arg-type]
                                         "will": [0o777, 1234, 1234], "made": []})  # fmt: skip
                done += 1
            except MachineRefuses:
                pass
            assert place.mode() == 0o755
            assert place.program.stat().st_uid == 0
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert done == 0 or kind is _Trusting


@needs_root
def test_undo_leaves_what_was_put_in_the_place_of_a_folder(place: Place) -> None:
    share = place.alice / "share"
    place.as_alice(share.mkdir)
    host = _Trusting(place.root)
    step = Folder("/alice/share", 0o777, ALICE, ALICE, adopt=True)
    data = step.before(host, None)  # type: ignore[arg-type]
    data["was"] = [0o4755, ALICE, ALICE]
    step.apply(host)
    place.as_alice(lambda: (share.rmdir(), share.symlink_to(place.program)))
    for judge, word in ((host, "is a link by now"), (place.host, "is a link by now")):
        assert word in undo_folder(judge, None, data)  # type: ignore[arg-type]
    assert place.mode() == 0o755
    place.as_alice(lambda: (share.unlink(), share.mkdir(), share.chmod(0o777)))
    assert "could put something else" in undo_folder(place.host, None, data)  # type: ignore[arg-type]
    made = {"path": "/alice/share", "made": ["/alice/share"]}
    assert "could put something else" in undo_folder(place.host, None, made)  # type: ignore[arg-type]
    assert stat.S_IMODE(share.stat().st_mode) == 0o777
    assert undo_folder(host, None, data) == ""  # type: ignore[arg-type]
    assert stat.S_IMODE(share.stat().st_mode) == 0o755, "no set-uid comes back"


@needs_root
def test_a_verification_by_root_opens_no_folder_but_its_own(place: Place) -> None:
    theirs = place.alice / "theirs"
    place.as_alice(lambda: (theirs.mkdir(0o700), (place.alice / "link").symlink_to(place.program)))
    for name in ("theirs", "link", "missing"):
        walk.widen(str(place.alice), name, 0o070)
    assert stat.S_IMODE(theirs.stat().st_mode) == 0o700
    assert place.mode() == 0o755
    (place.alice / "ours").mkdir(0o700)
    walk.widen(str(place.alice), "ours", 0o070)
    assert stat.S_IMODE((place.alice / "ours").stat().st_mode) == 0o770


def test_no_path_is_given_a_mode_or_an_owner() -> None:
    """By a descriptor it is what was opened, whatever has its name by then."""
    for path in Path(walk.__file__).parent.rglob("*.py"):
        for name in ("os.chmod(", "os.chown(", "os.lchown(", "shutil.chown("):
            assert name not in path.read_text(), f"{path.name}: {name}…"


@needs_root
def test_a_share_in_a_users_folder_is_refused_before_anything_changes(host: Pretended) -> None:
    (host.folder / "srv").chmod(0o777)
    request = ServerRequest("/srv/w", ("10.0.0.0/24",), owner="1000", shares_its_file_system=True)
    with pytest.raises(MachineRefuses, match="/srv can be written to by others"):
        perform(host, request)
    assert host.ran == []


def test_set_uid_is_no_mode_of_a_folder(host: Pretended) -> None:
    (host.folder / "srv/w").mkdir()
    (host.folder / "srv/w").chmod(0o6755)
    values = {"path": "/srv/w", "clients": ("10.0.0.0/24",), "shares_its_file_system": True}
    with pytest.raises(RequestRefused, match="has set-uid"):
        perform(host, ServerRequest(**values, mode="4770"))  # type: ignore[arg-type]
    perform(host, ServerRequest(**values, owner="1000"))  # type: ignore[arg-type]
    assert stat.S_IMODE((host.folder / "srv/w").stat().st_mode) == 0o2755
