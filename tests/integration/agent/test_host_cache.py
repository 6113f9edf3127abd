"""Eight children of one parent on one host: real processes below a real agent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.agent.fake_head import FakeHead
from trial_runtime import facts, weights
from trial_runtime.agent.config import CacheSpec
from trial_runtime.facts import EndReason

TRIAL = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import numpy as np
import trial_runtime as t
state = t.load_weights() or {"x": np.arange(50_000)}
assert state["x"][-1] == 49_999
print(sum(name.endswith(".safetensors") for name in opened))
t.save_weights(state)
"""


@pytest.mark.parametrize("kept", [True, False])
def test_the_original_is_read_by_one_of_eight(
    head_with: Callable[..., FakeHead], tmp_path: Path, kept: bool
) -> None:
    """With ``kept`` false, the control. Mutation: the agent does not tell trials of the cache."""
    cache = CacheSpec(10_000_000, str(tmp_path / "cache"), always=True) if kept else None
    head = head_with(command=f"{sys.executable} train.py", slots=8, cache=cache)
    head.script(TRIAL)
    head.run(1, parameters={"save_path": "1"}, save_path="1")
    (told,) = head.of(facts.WeightsPublished, 1)
    assert bool(weights.read_manifest(head.weights / "1").digests) == kept
    children = range(2, 10)
    for child in children:
        head.start(
            child,
            parameters={"save_path": str(child), "restore_path": "1"},
            save_path=str(child),
            restore_path="1",
            restore_digest=told.weights.digest,
            restore_kind="bequeath",
        )
    for child in children:
        assert head.end_of(child).reason == EndReason.FINISHED, head.end_of(child)
    read = sum(int(head.output(child)) for child in children)
    assert read == (1 if kept else len(children))
    # All inherit from the parent's own file, never from the copy.
    for child in children:
        (reference,) = weights.read_manifest(head.weights / str(child)).files
        assert reference.startswith("../1/")
