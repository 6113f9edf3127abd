"""What lies at the save path when a trial is over is what the head knows of."""

from __future__ import annotations

from pathlib import Path

import pytest

from trial_runtime import facts
from trial_runtime.agent.config import CacheSpec
from trial_runtime.facts import EndReason
from trial_runtime.failpoints import VARIABLE
from trial_runtime.weights.format.hashing import digest
from trial_runtime.weights.remote.address import RemoteRoot

TWICE = """
import numpy as np, trial_runtime as t
t.report_final(1.0)
t.save_weights({"w": np.zeros(10)})
t.save_weights({"w": np.ones(10)})
"""


def _last_digest(head, trial=1):
    return head.of(facts.WeightsPublished, trial)[-1].weights.digest


def _run(head, code=TWICE):
    head.script(code)
    return head.run(save_path="1", parameters={"save_path": "1"})


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_ended_between_a_save_and_the_word_of_it(head_with, reuse):
    """The next save has replaced what was announced, so a child would be let in to what is not
    there. Mutation: nobody looks where something was announced."""
    head = head_with(
        function="train:main",
        reuse=reuse,
        environment={VARIABLE: "weights.manifest.renamed@2=kill"},
    )
    body = "".join(f"    {line}\n" for line in TWICE.strip().splitlines()[1:])
    end = _run(head, f"import numpy as np, trial_runtime as t\ndef main(p):\n{body}")
    assert end.reason == EndReason.SIGNALLED
    there = (head.weights / "1/manifest.json").read_bytes()
    said = [word.weights.digest for word in head.of(facts.WeightsPublished, 1)]
    assert len(said) == 2
    assert said[-1] == digest(there)
    assert type(head.words[-1]) is facts.AttemptEnded


def test_where_weights_lie_on_no_folder(head_with, tmp_path: Path):
    """What was announced is not there any more, so it could not even be copied."""
    head = head_with(
        command="python train.py",
        environment={VARIABLE: "weights.manifest.renamed@2=kill"},
        remote=RemoteRoot(f"file://{tmp_path}/remote", {}, "lab"),
        cache=CacheSpec(1 << 20, str(tmp_path / "cache")),
    )
    end = _run(head)
    assert (end.reason, "no weights" in end.text) == (EndReason.SIGNALLED, False)
    (published,) = (tmp_path / "remote").glob("**/published/1/*.json")
    assert published.stem == _last_digest(head)


def test_what_was_announced_is_not_said_again(head_with):
    head = head_with(command="python train.py; exit 3")
    assert _run(head).reason == EndReason.FAILED
    assert len(head.of(facts.WeightsPublished, 1)) == 2
    assert _last_digest(head) == digest((head.weights / "1/manifest.json").read_bytes())


def test_what_was_announced_and_is_gone_is_named(head_with):
    head = head_with(command="python train.py; exit 3")
    gone = f"import shutil; shutil.rmtree({str(head.weights / '1')!r})"
    end = _run(head, f"{TWICE}\n{gone}")
    assert end.reason == EndReason.FAILED
    assert "no weights to commit" in end.text
