"""What an agent before has left half written goes, and what others are writing does not."""

from __future__ import annotations

from pathlib import Path

from trial_runtime.weights.remote.address import RemoteRoot
from trial_runtime.weights.remote.place import Place


def test_uploads_of_a_worker_whose_name_begins_alike_stay(tmp_path: Path) -> None:
    """Two workers of one host are called gpu and gpu-2."""
    root = RemoteRoot(f"file://{tmp_path}/remote", {}, "lab-1")
    one = Place(root, owner="gpu")
    for name in ("gpu-00ff", "gpu-2-00ff"):
        one.put_bytes(b"half", f".uploads/{name}")
    one.forget_uploads()
    assert list(one.listing(".uploads")) == [".uploads/gpu-2-00ff"]
