"""Publishing in pieces: a full disk, a torn version, and a head that is played by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trial_runtime import failpoints, session
from trial_runtime import trial_wire as wire
from trial_runtime.api_errors import NoSharedStore, StoreConflict
from trial_runtime.errors import CorruptWeights, DiskFull
from trial_runtime.session_file import SESSION_VERSION, PinnedVersion, SessionFile
from trial_runtime.stores import SharedStore


class Head:
    """Answers offers as the core does; ``quicker`` publish before an offer is judged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.line: list[PinnedVersion] = []
        self.quicker: list[Any] = []
        self.refusal = ""

    def trial(self, number: int, pinned: int = 0) -> SharedStore:
        told = SessionFile(
            SESSION_VERSION,
            "",
            "",
            number,
            1,
            str(self.folder),
            "{}",
            stores=str(self.folder / "stores"),
            versions=tuple(self.line[pinned - 1 : pinned]) if pinned else (),
            stale_timeout_s=0.0,
        )
        head = self

        class Session:
            file = told

            def offer(self, offer: wire.Offered) -> wire.OfferAnswered:
                return head.judge(offer)

        session.adopt(Session())  # type: ignore[arg-type]
        return SharedStore("omega")

    def judge(self, offer: wire.Offered) -> wire.OfferAnswered:
        if self.refusal:
            return wire.OfferAnswered(offer.digest, False, refusal=self.refusal)
        if self.quicker:
            self.quicker.pop(0)()
        accepted = offer.base == len(self.line)
        if accepted:
            number = len(self.line) + 1
            self.line.append(PinnedVersion(offer.store, number, offer.path, offer.digest))
        newest = self.line[-1] if self.line else None
        return wire.OfferAnswered(offer.digest, accepted, newest)

    def folders(self) -> set[str]:
        return {f"omega/{path.name}" for path in (self.folder / "stores").glob("omega/*")}


@pytest.fixture
def head(tmp_path: Path) -> Any:
    yield Head(tmp_path)
    session.adopt(None)


def state(**more: float) -> dict[str, Any]:
    return {name: np.full(64, value) for name, value in {"a": 0.0, "b": 0.0, **more}.items()}


@pytest.mark.parametrize("point", ["data.written", "data.synced", "manifest.written"])
def test_a_full_disk_leaves_no_half_and_the_next_publish_goes_on(head: Head, point: str) -> None:
    store = head.trial(1)
    assert store.publish(state()) == 1
    with failpoints.planned(f"weights.{point}=raise:ENOSPC"), pytest.raises(DiskFull):
        store.publish(state(a=1.0))
    assert head.folders() == {version.path for version in head.line}
    assert store.publish(state(a=2.0)) == 2
    assert store.load()["a"][0] == 2.0


@pytest.mark.parametrize("rounds", [1, 5])
def test_a_merge_loses_nothing_however_often_others_are_quicker(head: Head, rounds: int) -> None:
    head.trial(1).publish(state())
    mine = head.trial(2, pinned=1)

    def another() -> None:
        before = session.current()
        other = head.trial(3, pinned=len(head.line))
        found = {name: np.array(each) for name, each in other.load().items()}
        found["a"] += 1
        quicker, head.quicker = head.quicker, []
        other.publish(found)
        head.quicker = quicker
        session.adopt(before)

    head.quicker = [another] * rounds
    assert mine.publish(state(a=10.0, b=10.0), merge="add") == rounds + 2
    newest = mine.load()
    assert (newest["a"][0], newest["b"][0]) == (10.0 + rounds, 10.0)
    assert head.folders() == {version.path for version in head.line}, "what was refused is gone"


def test_without_a_merge_one_loses_clearly_and_may_go_on(head: Head) -> None:
    head.trial(1).publish(state())
    first, second = head.trial(2, pinned=1), head.trial(3, pinned=1)
    assert second.publish(state(a=1.0)) == 2
    with pytest.raises(StoreConflict, match="version 2 of 'omega' came first; this was made from"):
        first.publish(state(a=5.0))
    assert (first.version, first.newest) == (1, 2)
    assert first.load()["a"][0] == 0.0, "it stands where it stood"
    assert first.advance() == 2
    assert first.publish(state(a=6.0)) == 3
    assert len(head.folders()) == 3


def test_a_torn_or_changed_version_is_not_believed(head: Head) -> None:
    head.trial(1).publish(state())
    (data,) = (head.folder / "stores" / head.line[0].path).glob("*.safetensors")
    content = bytearray(data.read_bytes())
    content[-5] ^= 1
    data.chmod(0o600)
    data.write_bytes(bytes(content))
    with pytest.raises(CorruptWeights):
        head.trial(2, pinned=1).load()
    data.write_bytes(bytes(content[:-100]))
    with pytest.raises(CorruptWeights):
        head.trial(2, pinned=1).load()


def test_what_can_never_be_is_said_and_removed(head: Head) -> None:
    head.refusal = "there are 1,000 shared stores already"
    with pytest.raises(NoSharedStore, match="1,000 shared stores"):
        head.trial(1).publish(state())
    assert head.folders() == set()
