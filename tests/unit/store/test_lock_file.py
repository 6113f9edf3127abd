"""A lock that survives its holder's silence, and not its replacement."""

from __future__ import annotations

from pathlib import Path

from dispatcher.folders.names import LOCK_NAME
from dispatcher.folders.status import is_led
from dispatcher.store import lock_file
from dispatcher.store.lock_file import LockFile, is_held


def test_one_holder_until_it_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_held(path)
    first = LockFile.take(path, 0.0)
    assert first is not None
    assert is_held(path)
    assert LockFile.take(path, 0.0) is None
    first.release()
    first.release()
    assert not first.is_current
    second = LockFile.take(path, 0.0)
    assert second is not None
    second.release()


def test_a_replaced_lock_is_the_successors_and_its_old_holder_can_tell(tmp_path: Path) -> None:
    """Mutation: ``is_current`` is true whatever lies at the path."""
    path = tmp_path / LOCK_NAME
    first = LockFile.take(path, 0.0)
    assert first is not None
    second = LockFile.replace(path)
    assert (first.is_current, second.is_current) == (False, True)
    first.release()  # the end of the old holder frees nothing
    assert is_held(path)
    assert is_led(tmp_path)
    assert LockFile.take(path, 0.0) is None
    second.release()
    assert not is_led(tmp_path)


def test_who_waited_for_the_old_file_does_not_get_the_lead_with_it(tmp_path: Path) -> None:
    """It has opened the path before the file there was replaced. Mutation: ``take`` does not
    look whether what it locked is still what lies at the path."""
    path = tmp_path / "lock"
    first = LockFile.take(path, 0.0)
    assert first is not None
    real_open, opened = lock_file.os.open, []

    def open_then_replaced(name, flags, mode=0o777):  # type: ignore[no-untyped-def]
        descriptor = real_open(name, flags, mode)
        if name == path and not opened:
            opened.append(LockFile.replace(path))
            first.release()
        return descriptor

    lock_file.os.open = open_then_replaced
    try:
        assert LockFile.take(path, 0.0) is None
    finally:
        lock_file.os.open = real_open
    assert opened[0].is_current
    opened[0].release()


def test_a_deleted_file_does_not_end_the_lead(tmp_path: Path) -> None:
    lock = LockFile.take(tmp_path / "lock", 0.0)
    assert lock is not None
    (tmp_path / "lock").unlink()
    assert lock.is_current
    lock.release()
