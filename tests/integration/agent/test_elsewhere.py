"""The weights root is mounted at another place on this host than on the head's machine."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.integration.agent.fake_head import ROOT, FakeHead
from trial_runtime import facts, weights
from trial_runtime.agent.config import encode_config
from trial_runtime.facts import EndReason
from trial_runtime.weights.storage.share import lay_token

CANON = "/srv/of/the/head"

TRIAL = """
import json, sys
import numpy as np
import trial_runtime as t
p = t.get_parameters()
print(json.dumps(p))
if "restore_path" in p:
    assert t.load_weights()["x"].tolist() == [1.0, 1.0]
    assert t.load_weights(path=p["restore_path"])["x"].tolist() == [1.0, 1.0]
t.save_weights({"x": np.ones(2)})
t.report_final(1)
"""


def test_orders_and_words_are_translated(head_with: Callable[..., FakeHead]) -> None:
    with tempfile.TemporaryDirectory() as pretrained:
        weights.save({"x": np.ones(2)}, f"{pretrained}/bert")
        head = head_with(
            command=f"{sys.executable} train.py",
            canonical_root=CANON,
            canonical_read_roots=("/srv/pretrained",),
            read_roots=(pretrained,),
            stale_timeout_s=1.0,
        )
        head.script(TRIAL)
        here = os.path.realpath(head.weights)

        # As the head spells it: relative, as paths below the root are, and absolute.
        end = head.run(1, parameters={"save_path": "a/1", "lr": 1}, save_path="a/1")
        assert end.reason == EndReason.FINISHED, end
        assert f'"save_path": "{here}/a/1"' in head.output(1)
        (told,) = head.of(facts.WeightsPublished, 1)

        spelled = {"save_path": f"{CANON}/a/2", "restore_path": f"{CANON}/a/1"}
        end = head.run(
            2,
            parameters=spelled,
            **spelled,  # type: ignore[arg-type]
            restore_digest=told.weights.digest,
            restore_kind="bequeath",
        )
        assert end.reason == EndReason.FINISHED, end
        assert f'"restore_path": "{here}/a/1"' in head.output(2)
        assert CANON not in head.output(2)
        assert Path(here, "a/2/manifest.json").exists()

        spelled = {"save_path": f"{CANON}/a/3", "restore_path": "/srv/pretrained/bert"}
        end = head.run(3, parameters=spelled, **spelled)  # type: ignore[arg-type]
        assert end.reason == EndReason.FINISHED, end
        assert f'"restore_path": "{os.path.realpath(pretrained)}/bert"' in head.output(3)

        # What goes wrong is told with the names that the head knows.
        end = head.run(4, parameters={}, save_path=f"{CANON}/a/4", restore_path="a/none",
                       restore_digest="0" * 64, restore_kind="files", )  # fmt: skip
        assert end.reason == EndReason.START_FAILED
        assert f"{CANON}/a/none" in end.text
        assert here not in end.text
        end = head.run(5, parameters={"save_path": "a/5"}, save_path=f"{CANON}/../5")
        assert end.reason == EndReason.START_FAILED


@pytest.fixture
def looking() -> Iterator[FakeHead]:
    """A head whose agent has a token to look for, and was not started yet."""
    with tempfile.TemporaryDirectory(prefix="bq-") as folder:
        head = FakeHead(Path(folder).resolve(), command="true")
        yield head
        head.close()


def begin(head: FakeHead, token: str) -> None:
    head.changes |= {"root_token": token, "canonical_root": CANON, "stale_timeout_s": 0.0}
    head.launch()
    head.until(lambda: head.hellos, "a hello")


def test_the_right_share_is_joined_at_once(looking: FakeHead) -> None:
    begin(looking, lay_token(str(looking.weights)))
    assert [hello.trouble for hello in looking.hellos] == [""]


def test_nothing_mounted_is_said_again_and_again_and_mended_without_a_restart(
    looking: FakeHead,
) -> None:
    with tempfile.TemporaryDirectory() as other:
        token = lay_token(other)
        begin(looking, token)
        looking.until(lambda: len(looking.hellos) >= 3, "hellos like heartbeats")
        assert all("is empty" in hello.trouble for hello in looking.hellos)
        assert not looking.heartbeats
        assert "not joining: the weights root" in looking.log()
        os.rename(f"{other}/.bequeath", looking.weights / ".bequeath")  # as if it were mounted
        looking.until(lambda: not looking.hellos[-1].trouble, "it joins")
        assert looking.run(1).reason == EndReason.FINISHED
        assert "is as it should be now" in looking.log()


def test_another_share_is_not_joined(looking: FakeHead) -> None:
    lay_token(str(looking.weights))
    begin(looking, "0" * 32)
    assert f"is another share than the head's ({CANON})" in looking.hellos[0].trouble


_MOUNTED = """
import os, subprocess, sys
source, target, *argv = sys.argv[1:]
subprocess.run(["mount", "--bind", *os.environ.get("BQ_OPTIONS", "").split(), source, target],
               check=True)
os.execv(argv[0], argv)
"""


def bound(source: Path, target: Path, argv: list[str]) -> list[str]:
    """A command in a mount namespace of its own, in which ``source`` is also at ``target``."""
    return ["unshare", "-m", sys.executable, "-c", _MOUNTED, str(source), str(target), *argv]


@pytest.fixture
def may_mount(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    done = subprocess.run(bound(one, two, ["/bin/true"]), capture_output=True, check=False)
    if done.returncode:
        pytest.skip("needs the right to mount folders in a namespace of its own (root)")


class BoundHead(FakeHead):
    """Its agent sees ``self.weights`` at another place only."""

    def place(self) -> Path:
        there = self.folder / "mnt"
        there.mkdir(exist_ok=True)
        return there

    share: Path

    def launch(self) -> None:
        path = self.folder / "agent.config"
        path.write_bytes(encode_config(self.config()))
        agent = [sys.executable, "-m", "trial_runtime.agent", str(path)]
        with open(self.folder / "agent.log", "ab") as log:
            self.process = subprocess.Popen(
                bound(self.share, self.place(), agent),
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


def test_two_agents_at_two_places_of_one_folder_hand_over(may_mount: None, tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    token = lay_token(str(share))
    heads: list[BoundHead] = []
    with (
        tempfile.TemporaryDirectory(prefix="bq-") as a,
        tempfile.TemporaryDirectory(prefix="bq-") as b,
    ):
        try:
            for folder in (a, b):
                head = BoundHead(Path(folder).resolve(), command=f"{sys.executable} train.py")
                heads.append(head)
                head.share = share
                head.changes |= {
                    "root_token": token,
                    "canonical_root": str(share),
                    "weights_root": str(head.place()),
                }
                head.script(TRIAL)
                head.launch()
            one, two = heads
            for each in heads:
                each.until(each.hellos.copy, "a hello")
                assert each.hellos[-1].trouble == ""
            end = one.run(1, parameters={"save_path": "1"}, save_path="1")
            assert end.reason == EndReason.FINISHED, end
            (told,) = one.of(facts.WeightsPublished, 1)
            spelled = {"save_path": "2", "restore_path": str(share / "1")}
            end = two.run(
                2,
                parameters=spelled,
                save_path="2",
                restore_path="1",
                restore_digest=told.weights.digest,
                restore_kind="bequeath",
            )
            assert end.reason == EndReason.FINISHED, end
            assert f'"restore_path": "{two.place()}/1"' in two.output(2)
            # Nothing was copied: the child's manifest refers to its parent's file.
            manifest = weights.read_manifest(share / "2", root=str(share))
            assert all(reference.startswith("../1/") for reference in manifest.files)
        finally:
            for each in heads:
                each.close()


def test_a_share_that_is_read_only_here_is_not_joined(
    may_mount: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BQ_OPTIONS", "-o ro")
    share = tmp_path / "share"
    share.mkdir()
    with tempfile.TemporaryDirectory(prefix="bq-") as folder:
        head = BoundHead(Path(folder).resolve(), command="true")
        head.share = share
        head.changes["weights_root"] = str(head.place())
        try:
            begin(head, lay_token(str(share)))
            assert "is read-only on this host" in head.hellos[0].trouble
        finally:
            head.close()
