"""A head of 0.1.0 goes on when another version is installed, and starts its tuner host by that."""

from __future__ import annotations

import json
from pathlib import Path

from dispatcher.nni.tuner.adapter import ADAPTER
from dispatcher.tuner_host import config
from dispatcher.tuner_host.adapter import PLAIN, adapter_of
from trial_runtime.endpoint import Endpoint


def test_tuners_of_nni_are_still_taken_for_such(tmp_path: Path) -> None:
    """That head names no adapter, but says that the code is written for NNI. Mutation: without an
    adapter it is a plain tuner, which cannot import ``nni``."""
    path = tmp_path / "tuner_host.json"
    config.write(config.TunerHostConfig(endpoint=Endpoint("ipc:///x"), weights_root="/w"), path)
    assert adapter_of(config.read(path)) is PLAIN
    path.write_text(json.dumps({**json.loads(path.read_text()), "nni": True}))
    assert adapter_of(config.read(path)) is ADAPTER
