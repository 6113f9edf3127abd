"""Versions off the books go, with what died publishers left; nothing else does, whoever dies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
import pytest

from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.weight_keeper.storage import FolderVersionStorage, VersionStorage
from dispatcher.weight_keeper.store_sweep import Granted, StoreSweep
from trial_runtime import failpoints, weights
from trial_runtime.weights.remote.address import RemoteRoot
from trial_runtime.weights.remote.place import Place
from trial_runtime.weights.remote.pushing import push
from trial_runtime.weights.remote.record import StoredFile
from trial_runtime.weights.remote.stores import RemoteStores


class Attempts:
    def __init__(self) -> None:
        self.over: set[tuple[int, int]] = set()

    def attempts_over(self, attempts: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
        return {each for each in attempts if each in self.over}


class Bench:
    """A line of versions on disk, each made from the one before, and who has them on the books."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.attempts = Attempts()
        self.kept: dict[str, str] = {}
        self.removed: list[str] = []
        self.asked = 0
        self.meanwhile: Callable[[], None] = lambda: None  # before the answer is given
        self.shelf: VersionStorage = FolderVersionStorage(root)
        self.sweep = self.new_sweep()

    def new_sweep(self) -> StoreSweep:
        return StoreSweep(self.shelf, self.attempts, self.answer)

    def answer(self) -> Granted:
        self.asked += 1
        self.meanwhile()
        removed, self.removed = self.removed, []
        return Granted(tuple(removed), dict(self.kept))

    def write(self, trial: int, word: str, parent: str | None = None, *, enter: bool = True) -> str:
        """A version that shares ``common`` with its parent and has a tensor of its own."""
        path = f"omega/{trial}.1-{word}"
        state = {"common": np.ones(512), "own": np.full(256, float(int(word, 16)))}
        published = weights.save(
            state,
            str(self.root / path),
            parent=None if parent is None else str(self.root / parent),
            parent_digest=None if parent is None else self.digests[parent],
            root=str(self.root),
        )
        self.digests = {**getattr(self, "digests", {}), path: published.digest}
        if enter:
            self.kept[path] = published.digest
        return path

    def strike(self, *paths: str) -> None:
        """Take versions off the books."""
        for path in paths:
            del self.kept[path]
            self.removed.append(path)

    def all_load(self) -> None:
        for path, digest in self.kept.items():
            state = weights.load(str(self.root / path), digest=digest, root=str(self.root))
            assert state["common"].tolist() == [1.0] * 512


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "stores")


def test_what_is_off_the_books_goes_but_for_files_that_others_refer_to(bench: Bench) -> None:
    first = bench.write(1, "a")
    second = bench.write(2, "b", first)
    third = bench.write(3, "c", second)
    bench.strike(first, second)
    swept = bench.sweep.look()
    assert (swept.versions, swept.leftovers) == (2, 0)
    assert bench.shelf.folders() == [first, third], "the first has 'common'"
    assert not (bench.root / first / "manifest.json").exists()
    bench.all_load()


def test_what_a_dead_publisher_left_goes_and_what_a_live_one_writes_stays(bench: Bench) -> None:
    first = bench.write(1, "a")
    left = bench.write(2, "b", first, enter=False)
    (bench.root / "omega" / "2.1-ff").mkdir()  # it was killed while it wrote
    (bench.root / "omega" / "2.1-ff" / ".half").write_bytes(b"x" * 100)
    written = bench.write(3, "c", first, enter=False)
    foreign = bench.root / "omega" / "notes"
    foreign.mkdir()
    bench.attempts.over = {(1, 1), (2, 1)}
    swept = bench.sweep.look(over_bound=False)
    assert (swept.versions, swept.leftovers) == (0, 2)
    assert bench.shelf.folders() == sorted([first, written, "omega/notes"])
    assert not (bench.root / left).exists()
    assert bench.asked == 1
    bench.sweep.look(over_bound=False)
    assert bench.asked == 1, "nothing is new there"


def test_an_offer_that_is_accepted_while_the_sweep_asks_is_a_version(bench: Bench) -> None:
    """It was listed as no version; then its attempt offered it, was accepted, and ended."""
    first = bench.write(1, "a")
    offered = bench.write(2, "b", first, enter=False)

    def accepted() -> None:
        bench.kept[offered] = bench.digests[offered]
        bench.attempts.over.add((2, 1))

    bench.meanwhile = accepted
    bench.attempts.over = {(1, 1)}
    bench.sweep.look()
    assert bench.shelf.folders() == [first, offered]
    bench.attempts.over = {(2, 1)}  # told before it asks this time
    bench.sweep.look()
    assert bench.shelf.folders() == [first, offered]
    bench.all_load()


def test_without_an_answer_or_with_a_version_that_cannot_be_read_nothing_goes(
    bench: Bench,
) -> None:
    first = bench.write(1, "a")
    second = bench.write(2, "b")
    StoreSweep(bench.shelf, bench.attempts, lambda: None).look()
    bench.strike(first)
    manifest = bench.root / second / "manifest.json"
    content = manifest.read_bytes()
    manifest.write_bytes(content[: len(content) // 2])
    with pytest.raises((PassingBackendError, PermanentBackendError), match="were not removed"):
        bench.sweep.look()
    assert bench.shelf.folders() == [first, second]
    manifest.write_bytes(content)
    assert bench.sweep.look().versions == 1, "what was granted before is not forgotten"
    assert bench.shelf.folders() == [second]


@pytest.mark.parametrize("point", ["listed", "granted", "removed"])
def test_a_keeper_that_dies_anywhere_leaves_a_store_that_is_whole(bench: Bench, point: str) -> None:
    first = bench.write(1, "a")
    second = bench.write(2, "b", first)
    bench.write(3, "c", second)
    bench.strike(first, second)
    bench.attempts.over = {(1, 1), (2, 1), (3, 1)}
    plan = f"keeper.versions.{point}=raise:EIO"
    with failpoints.planned(plan), pytest.raises(PassingBackendError):
        bench.sweep.look()
    bench.all_load()
    bench.sweep = bench.new_sweep()  # of another head, which the answer was not given to
    bench.removed.clear()
    bench.sweep.look(over_bound=False)
    assert second not in bench.shelf.folders()
    bench.all_load()


def test_publishers_and_a_sweep_at_once(bench: Bench) -> None:
    """Versions are entered and struck while a sweep looks again and again."""
    done = threading.Event()
    faults: list[BaseException] = []
    lock = threading.Lock()

    def publish() -> None:
        before = None
        try:
            for number in range(1, 60):
                path = bench.write(number, f"{number:x}", before, enter=False)
                with lock:
                    bench.kept[path] = bench.digests[path]
                    bench.attempts.over.add((number - 1, 1))
                    old = [each for each in bench.kept if each != path][:-2]
                    bench.strike(*old)
                before = path
        except BaseException as error:  # noqa: BLE001 - shown by the test
            faults.append(error)
        finally:
            done.set()

    def answer() -> Granted:
        with lock:
            removed, bench.removed = bench.removed, []
            return Granted(tuple(removed), dict(bench.kept))

    sweep = StoreSweep(bench.shelf, bench.attempts, answer)
    publisher = threading.Thread(target=publish)
    publisher.start()
    while not done.is_set():
        sweep.look()
    publisher.join()
    sweep.look()
    assert faults == []
    bench.all_load()
    assert len(bench.shelf.folders()) <= 4, "three, and whose file is shared"


def test_on_a_remote_root_the_same_goes(bench: Bench, tmp_path: Path) -> None:
    place = Place(RemoteRoot(f"file://{tmp_path}/remote", scope="x"))
    view = str(tmp_path / "view")
    bench.root = Path(view) / ".stores"
    inherited: dict[str, StoredFile] = {}
    paths = []
    for number, word in enumerate("abc", 1):
        path = bench.write(number, word, paths[-1] if paths else None)
        pushed = push(place, view, f".stores/{path}", writer=f"{number}.1", inherited=inherited)
        inherited.update({file.path: file for file in pushed.record.files})
        paths.append(path)
    left = bench.write(9, "d", paths[-1], enter=False)
    push(place, view, f".stores/{left}", writer="9.1", inherited=inherited)
    bench.shelf = RemoteStores(place)
    assert bench.shelf.folders() == [*paths, left]
    bench.strike(*paths[:2])
    bench.attempts.over = {(9, 1)}
    swept = bench.new_sweep().look()
    assert (swept.versions, swept.leftovers) == (2, 1)
    assert bench.shelf.folders() == [paths[0], paths[2]], "the first has 'common'"
    use = bench.shelf.file_use(paths[2])
    assert all(place.size(file) is not None for file in (*use.own, *use.inherited))
