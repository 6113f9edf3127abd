"""The cache of weights on a host: fetched once, bounded, safe from crashes and damage."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from blake3 import blake3

from trial_runtime.errors import CorruptWeights
from trial_runtime.weights.cache import cache as module
from trial_runtime.weights.cache.cache import CacheUnusable, WeightsCache

PATIENCE_S = 120.0


class Original:
    """A file elsewhere, and how often it was read."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.digest = blake3(content).hexdigest()
        self.reads = 0

    def fetch(self, to: BinaryIO) -> None:
        self.reads += 1
        for at in range(0, len(self.content), 1000):
            to.write(self.content[at : at + 1000])

    def through(self, cache: WeightsCache, *, check: bool = True) -> bytes:
        with cache.get(self.digest, len(self.content), self.fetch, check=check) as path:
            return Path(path).read_bytes()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WeightsCache:
    # However full the disk of whoever runs this.
    monkeypatch.setattr(module, "SPARED_BYTES", 0)
    return WeightsCache(str(tmp_path / "cache"), 100_000, stall_s=PATIENCE_S)


def names(cache: WeightsCache) -> set[str]:
    return set(os.listdir(f"{cache.folder}/entries"))


def test_a_file_is_fetched_once(cache: WeightsCache) -> None:
    file = Original(os.urandom(30_000))
    assert file.through(cache) == file.content
    assert file.through(cache) == file.content
    assert file.through(WeightsCache(cache.folder, 100_000)) == file.content  # another process's
    assert file.reads == 1


def test_an_empty_file_is_a_file(cache: WeightsCache) -> None:
    file = Original(b"")
    assert file.through(cache) == file.through(cache) == b""


def test_the_folder_is_its_owners_alone(cache: WeightsCache) -> None:
    Original(b"x").through(cache)
    assert os.stat(cache.folder).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_entry_is_thrown_away_and_fetched_again(cache: WeightsCache, damage: str) -> None:
    file = Original(os.urandom(9_000))
    file.through(cache)
    entry = Path(cache.folder, "entries", file.digest)
    if damage == "cut":
        os.truncate(entry, 4_000)
    else:
        with open(entry, "r+b") as opened:
            opened.seek(5_000)
            opened.write(bytes([file.content[5_000] ^ 1]))
    assert file.through(cache) == file.content
    assert file.reads == 2


def test_a_reader_that_compares_by_itself_discards_what_is_damaged(cache: WeightsCache) -> None:
    file = Original(os.urandom(9_000))
    file.through(cache)
    Path(cache.folder, "entries", file.digest).write_bytes(bytes(9_000))
    assert file.through(cache, check=False) == bytes(9_000)
    cache.discard(file.digest)
    assert file.through(cache, check=False) == file.content


def test_what_was_fetched_is_compared(cache: WeightsCache) -> None:
    file = Original(os.urandom(9_000))
    file.digest = "0" * 64
    with pytest.raises(CorruptWeights, match="were published"):
        file.through(cache)
    assert file.reads == 2  # once more, in case it was damaged on the way
    assert names(cache) == set()


@pytest.mark.parametrize("more", [-1, 1])
def test_a_file_of_another_size_is_not_taken(cache: WeightsCache, more: int) -> None:
    file = Original(os.urandom(9_000))
    with (
        pytest.raises(CorruptWeights),
        cache.get(file.digest, 9_000 + more, file.fetch),
    ):
        pass
    assert names(cache) == set()


def test_damage_on_the_way_is_not_the_end(cache: WeightsCache) -> None:
    file = Original(os.urandom(9_000))

    def fetch(to: BinaryIO) -> None:
        if not file.reads:
            file.reads += 1
            to.write(bytes(9_000))
        else:
            file.fetch(to)

    with cache.get(file.digest, 9_000, fetch) as path:
        assert Path(path).read_bytes() == file.content


def test_the_least_recently_used_goes_first(cache: WeightsCache) -> None:
    first, second, third = (Original(os.urandom(40_000)) for _ in range(3))
    for age, file in enumerate((first, second)):
        file.through(cache)
        os.utime(f"{cache.folder}/entries/{file.digest}", (age + 1, age + 1))
    first.through(cache)
    third.through(cache)
    assert names(cache) == {first.digest, third.digest}


def test_what_is_in_use_stays(cache: WeightsCache) -> None:
    one, two, three = (Original(os.urandom(40_000)) for _ in range(3))
    with (
        cache.get(one.digest, 40_000, one.fetch) as a,
        cache.get(two.digest, 40_000, two.fetch) as b,
    ):
        with pytest.raises(CacheUnusable, match="no room"):
            three.through(cache)
        assert Path(a).read_bytes() == one.content
        assert Path(b).read_bytes() == two.content
    assert three.through(cache) == three.content


def test_a_file_larger_than_the_cache_drives_nothing_out(cache: WeightsCache) -> None:
    small, large = Original(os.urandom(40_000)), Original(os.urandom(100_001))
    small.through(cache)
    with pytest.raises(CacheUnusable, match="no room"):
        large.through(cache)
    assert names(cache) == {small.digest}
    assert large.reads == 0


def test_small_entries_are_bounded_too(cache: WeightsCache) -> None:
    for number in range(40):
        Original(b"%d" % number).through(cache)
    assert len(names(cache)) == 100_000 // 4096


def test_readers_at_once_fetch_once(cache: WeightsCache) -> None:
    file = Original(os.urandom(50_000))
    begun, seen = threading.Event(), []

    def fetch(to: BinaryIO) -> None:
        begun.set()
        file.fetch(to)

    def read() -> None:
        with cache.get(file.digest, 50_000, fetch) as path:
            seen.append(Path(path).read_bytes())

    readers = [threading.Thread(target=read) for _ in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(120)
    assert begun.is_set()
    assert seen == [file.content] * 8
    assert file.reads == 1


_READER = """
import sys
from trial_runtime.weights.cache.cache import WeightsCache
folder, digest, original, log = sys.argv[1:]
content = open(original, "rb").read()
def fetch(to):
    with open(log, "ab", buffering=0) as file:
        file.write(b"x")
    to.write(content)
with WeightsCache(folder, 10_000_000).get(digest, len(content), fetch) as path:
    assert open(path, "rb").read() == content
"""


def _reader(*args: str, failpoints: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _READER, *args],
        env={**os.environ, "BEQUEATH_FAILPOINTS": failpoints},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_of_one_host_fetch_once(tmp_path: Path) -> None:
    file = Original(os.urandom(300_000))
    (tmp_path / "original").write_bytes(file.content)
    args = (str(tmp_path / "cache"), file.digest, str(tmp_path / "original"), str(tmp_path / "log"))
    readers = [_reader(*args) for _ in range(4)]
    for reader in readers:
        _, err = reader.communicate(timeout=120)
        assert reader.returncode == 0, err
    assert (tmp_path / "log").read_bytes() == b"x"


def test_a_crash_in_the_middle_leaves_nothing_that_counts(tmp_path: Path) -> None:
    file = Original(os.urandom(300_000))
    (tmp_path / "original").write_bytes(file.content)
    cache = WeightsCache(str(tmp_path / "cache"), 10_000_000)
    dead = _reader(
        cache.folder,
        file.digest,
        str(tmp_path / "original"),
        str(tmp_path / "log"),
        failpoints="weights.cache.fetched=kill",
    )
    dead.communicate(timeout=120)
    assert dead.returncode == -signal.SIGKILL
    assert names(cache) == {f".part-{file.digest}"}
    # Whoever makes room next clears it away, ...
    other = Original(b"another")
    other.through(cache)
    assert names(cache) == {other.digest}
    # ... and whoever wants the file fetches it.
    assert file.through(cache) == file.content


def test_another_that_does_not_get_on_is_waited_for_within_a_bound(cache: WeightsCache) -> None:
    file = Original(os.urandom(1_000))
    hasty = WeightsCache(cache.folder, 100_000, stall_s=0.3)
    begun, go_on = threading.Event(), threading.Event()

    def stuck(to: BinaryIO) -> None:
        begun.set()
        go_on.wait(120)
        file.fetch(to)

    def hang() -> None:
        with cache.get(file.digest, 1_000, stuck):
            pass

    slow = threading.Thread(target=hang)
    slow.start()
    try:
        assert begun.wait(120)
        with pytest.raises(CacheUnusable, match="without getting on"):
            file.through(hasty)
    finally:
        go_on.set()
        slow.join(120)


def test_a_fetch_that_fails_says_why_and_leaves_nothing(cache: WeightsCache) -> None:
    def fetch(to: BinaryIO) -> None:
        to.write(b"some")
        raise OSError(errno.EIO, "the share broke")

    file = Original(b"something")
    with pytest.raises(OSError, match="the share broke"), cache.get(file.digest, 9, fetch):
        pass
    assert names(cache) == set()
    assert file.through(cache) == file.content


def test_a_full_disk_is_the_caches_own_matter(
    cache: WeightsCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Original(os.urandom(9_000))

    def full(fd: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("trial_runtime.weights.cache.entries.os.write", full)
    with pytest.raises(CacheUnusable, match="full disk"):
        file.through(cache)
    monkeypatch.undo()
    assert names(cache) == set()


def test_some_of_the_disk_is_left_to_others(
    cache: WeightsCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SPARED_BYTES", 1 << 60)
    monkeypatch.setattr(module, "SPARED_PART", 1.0)
    file = Original(b"something")
    with pytest.raises(CacheUnusable, match="no room"):
        file.through(cache)
    assert file.reads == 0


def test_a_network_file_system_is_refused_with_the_reason(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(f"1 0 0:1 / {tmp_path} rw - nfs4 server:/x rw\n")
    cache = WeightsCache(str(tmp_path / "cache"), 1_000, mountinfo=table)
    with pytest.raises(CacheUnusable, match="network file system \\(nfs4\\)"):
        Original(b"x").through(cache)
    assert not os.path.exists(cache.folder)


def _open_to_others(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def _a_link(folder: Path) -> None:
    elsewhere = folder.with_name("elsewhere")
    elsewhere.mkdir()
    folder.symlink_to(elsewhere)


@pytest.mark.parametrize("make", [_open_to_others, _a_link])
def test_a_folder_that_others_may_change_is_refused(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "cache")
    with pytest.raises(CacheUnusable, match="only its owner"):
        Original(b"x").through(WeightsCache(str(tmp_path / "cache"), 1_000))


def test_no_bytes_switch_it_off(tmp_path: Path) -> None:
    with pytest.raises(CacheUnusable, match="switched off"):
        Original(b"x").through(WeightsCache(str(tmp_path / "cache"), 0))
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("digest", ["", "../" + "0" * 61, "0" * 63, "G" * 64])
def test_nothing_but_a_digest_names_an_entry(cache: WeightsCache, digest: str) -> None:
    with pytest.raises(ValueError, match="not the digest"), cache.get(digest, 1, lambda _: None):
        pass
