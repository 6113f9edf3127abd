"""Words that wait for a head on a disk that fails: kept, whole, in order, or not believed."""

from __future__ import annotations

import errno
import os
import random
import struct
from pathlib import Path

import pytest

from tests.faults.storage.conftest import SmallDisk
from trial_runtime import facts
from trial_runtime.agent.link import outbox as module
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.fact_wire import decode_fact, encode_fact
from trial_runtime.facts import EndReason


def _metric(number: int) -> facts.AttemptFact:
    return facts.MetricReported(number, 1, number, "0.5")


def _add(outbox: Outbox, numbers: range) -> None:
    for number in numbers:
        outbox.add(_metric(number), urgent=False)


def _words(path: Path) -> list[int]:
    """What an agent that is started on this spool would hand in."""
    frame = Outbox(str(path)).next_frame()
    return [decode_fact(raw).trial for raw in frame.messages] if frame else []


def test_a_full_disk_keeps_no_word_from_the_next_head(small_disk: SmallDisk) -> None:
    path = small_disk.folder / "spool"
    outbox = Outbox(str(path))
    _add(outbox, range(100))
    outbox.spool()
    small_disk.fill()
    _add(outbox, range(100, 1000))
    with pytest.raises(OSError, match="No space") as caught:
        outbox.spool()
    assert caught.value.errno == errno.ENOSPC
    found = _words(path)  # what was spooled before, and of the rest what still fitted
    assert 100 <= len(found) < 1000
    assert found == list(range(len(found)))
    assert outbox.unsent == 1000, "all are still in memory"

    small_disk.free()
    _add(outbox, range(1000, 1100))
    outbox.spool()
    assert _words(path) == list(range(1100)), "nothing that was torn lies in between"


@pytest.mark.parametrize("spooled_before", [0, 50])
def test_a_write_error_leaves_a_spool_that_can_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spooled_before: int
) -> None:
    path = tmp_path / "spool"
    outbox = Outbox(str(path))
    _add(outbox, range(spooled_before))
    outbox.spool()
    _add(outbox, range(spooled_before, 80))
    with monkeypatch.context() as broken:

        def fail(_descriptor: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        broken.setattr(module.os, "fsync", fail)
        with pytest.raises(OSError, match="Input/output"):
            outbox.spool()
    outbox.spool()
    assert _words(path) == list(range(80))


def test_an_agent_goes_on_where_another_was_torn_off(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    first = Outbox(str(path))
    _add(first, range(10))
    first.spool()
    path.write_bytes(path.read_bytes()[:-3])  # it died within its last word
    second = Outbox(str(path))
    _add(second, range(100, 110))
    second.spool()
    assert _words(path) == [*range(9), *range(100, 110)]


def test_no_flipped_bit_is_handed_in_as_a_word(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    outbox = Outbox(str(path))
    _add(outbox, range(40))
    outbox.spool()
    good = path.read_bytes()
    dice = random.Random(5)
    for _ in range(400):
        bit = dice.randrange(len(good) * 8)
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        found = _words(path)
        assert found == list(range(len(found))), f"bit {bit} changed a word"


def test_a_spool_of_the_version_before_is_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    raws = [bytes(encode_fact(_metric(number))) for number in range(20)]
    path.write_bytes(b"".join(struct.pack("<I", len(raw)) + raw for raw in raws))
    outbox = Outbox(str(path))
    assert outbox.unsent == 20
    _add(outbox, range(20, 25))
    outbox.spool()
    assert _words(path) == list(range(25))
    outbox.acknowledge(25)
    assert not path.exists()


def test_what_does_not_fit_waits_with_its_trial_and_is_not_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 2000)
    outbox = Outbox(str(tmp_path / "spool"))
    number = 0
    while not outbox.full:  # an agent stops listening to its trials here
        outbox.add(_metric(number), urgent=False)
        number += 1
    # What the agent itself has to say of trials that end meanwhile is kept all the same.
    outbox.add(facts.FinalReported(0, 1, number, "1.0"), urgent=True)
    outbox.add(facts.AttemptEnded(0, 1, EndReason.FINISHED), urgent=True)
    outbox.spool()
    assert len(_words(tmp_path / "spool")) == number + 2
    outbox.acknowledge(number + 2)
    assert not outbox.full
