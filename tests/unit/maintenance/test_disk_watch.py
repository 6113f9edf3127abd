"""The watch over the disks: when it speaks, and that it says it once."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dispatcher.core.events import DiskLow, DiskRecovered, Event
from dispatcher.errors import PassingBackendError
from dispatcher.maintenance.disk_watch import DiskWatch
from dispatcher.wiring.watermark import Watermark

MB = 1 << 20


def disk(free_mb: float, size_mb: int = 100_000) -> Any:
    return SimpleNamespace(f_frsize=4096, f_blocks=size_mb * 256, f_bavail=int(free_mb * 256))


class Disks:
    """File systems of a given free space, and whoever is told about them."""

    def __init__(self, *places: str, reserve_mb: int = 500, **more: Any) -> None:
        self.free: dict[str, float | OSError] = dict.fromkeys(places, 10_000.0)
        self.said: list[Event] = []
        self.notes: list[str] = []
        self.deaf = False
        self.watch = DiskWatch(
            [Path(place) for place in places],
            reserve_mb * MB,
            self._post,
            self.notes.append,
            statvfs=self._statvfs,
            device_of=lambda place: hash(place),
            **more,
        )

    def _post(self, event: Event) -> None:
        if self.deaf:
            raise PassingBackendError("the engine is behind; try again")
        self.said.append(event)

    def _statvfs(self, place: str) -> Any:
        free = self.free[place]
        if isinstance(free, OSError):
            raise free
        return disk(free)

    def look(self, **free: float | OSError) -> list[Event]:
        """What is said when so much is free."""
        self.free.update({f"/{place}": value for place, value in free.items()})
        self.said.clear()
        self.watch.look()
        return list(self.said)


def test_below_the_mark_it_is_low_once_and_recovers_with_room_to_spare() -> None:
    disks = Disks("/w")
    assert disks.look(w=500) == []
    assert disks.look(w=499) == [DiskLow("/w", 499 * MB, 500 * MB)]
    assert disks.look(w=100) == []
    assert disks.look(w=500) == []  # at the mark itself it would start and pause by turns
    assert disks.look(w=599) == []
    assert disks.look(w=600) == [DiskRecovered("/w", 600 * MB)]
    assert disks.look(w=550) == []
    assert disks.look(w=10) == [DiskLow("/w", 10 * MB, 500 * MB)]


def test_each_disk_has_its_own_mark() -> None:
    disks = Disks("/e", "/w")
    assert disks.look(w=1) == [DiskLow("/w", 1 * MB, 500 * MB)]
    assert disks.look(e=1) == [DiskLow("/e", 1 * MB, 500 * MB)]
    assert disks.look(w=10_000) == [DiskRecovered("/w", 10_000 * MB)]


def test_of_a_small_disk_at_most_a_twentieth_is_kept() -> None:
    mark = Watermark("/w", 500 * MB)
    assert mark.judge(disk(2.1, size_mb=40)) is None
    assert mark.judge(disk(1.9, size_mb=40)) == DiskLow("/w", int(1.9 * 256) * 4096, 2 * MB)


def test_a_reserve_of_nothing_watches_nothing() -> None:
    disks = Disks("/w", reserve_mb=0)
    assert disks.look(w=0) == []
    disks.watch.start()
    disks.watch.join(timeout=120.0)
    assert not disks.watch.is_alive()


def test_what_the_engine_could_not_take_is_said_again() -> None:
    disks = Disks("/w")
    disks.deaf = True
    assert disks.look(w=1) == []
    disks.deaf = False
    assert len(disks.look(w=1)) == 1
    assert disks.look(w=1) == []


def test_a_disk_that_cannot_be_seen_stays_what_it_was_and_is_named_once() -> None:
    disks = Disks("/w")
    disks.look(w=1)
    gone = OSError(116, "Stale file handle")
    assert disks.look(w=gone) == []
    assert disks.look(w=gone) == []
    assert disks.notes == ["cannot see how full the disk of /w is: Stale file handle"]
    assert disks.look(w=10_000) == [DiskRecovered("/w", 10_000 * MB)]


def test_folders_on_one_disk_count_once(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    said: list[Event] = []
    notes: list[str] = []
    watch = DiskWatch(
        [tmp_path, tmp_path / "weights", tmp_path / "not there"],
        1 * MB,
        said.append,
        notes.append,
        statvfs=lambda place: os.statvfs(place) and disk(0.5),
    )
    watch.look()
    assert [event.place for event in said if isinstance(event, DiskLow)] == [str(tmp_path)]
    assert len(notes) == 1
    assert "not there" in notes[0]


@pytest.mark.parametrize("every_s", [3600.0])
def test_the_thread_looks_at_once_and_ends_when_told(every_s: float) -> None:
    disks = Disks("/w", every_s=every_s)
    disks.free["/w"] = 1.0
    disks.watch.start()
    disks.watch.close()
    disks.watch.join(timeout=120.0)
    assert not disks.watch.is_alive()
    assert len(disks.said) == 1


def test_a_server_that_does_not_answer_hides_no_other_disk() -> None:
    """Not even at the start: the head begins while a share is away."""
    answers, looked = threading.Event(), threading.Event()
    said: list[Event] = []

    def hang(place: Path) -> int:
        if str(place) == "/share":
            looked.set()
            answers.wait(120)
        return hash(place)

    def post(event: Event) -> None:
        said.append(event)
        told.set()

    told = threading.Event()
    free = {"/local": 10_000.0, "/share": 1.0}
    watch = DiskWatch(
        [Path("/local"), Path("/share")],
        500 * MB,
        post,
        lambda text: None,
        every_s=0.01,
        statvfs=lambda place: disk(free[place]),
        device_of=hang,
    )
    watch.start()
    assert looked.wait(120)
    free["/local"] = 1.0
    assert told.wait(120), "the local disk is looked at while the share hangs"
    assert said == [DiskLow("/local", 1 * MB, 500 * MB)]
    told.clear()
    answers.set()
    assert told.wait(120)
    watch.close()
    assert said[1:] == [DiskLow("/share", 1 * MB, 500 * MB)]
