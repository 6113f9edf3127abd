"""The end of a tuner's output, which people see when its process has ended."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dispatcher.tuner_host.output import Output
from trial_runtime.masking import Mask

SECRET = "planted-secret-0123456789abcdef"


@pytest.mark.parametrize("first", [100, 420, 430, 445, 1_800])
def test_the_last_lines_are_those_of_this_process(tmp_path: Path, first: int) -> None:
    """Mutation: only the newest file, which may begin with the end of a secret; the output of the
    process before it."""
    path = tmp_path / "tuner.log"
    path.write_text("of the one before\n" * 30)  # 540 bytes
    output = Output(path, max_bytes=1_000, max_files=4)
    pipe = os.dup(output.write_end)
    output.begin()
    os.write(pipe, b"begun\n")
    output.settle(60.0)  # so that the rest fills the file up, and goes on in the next one
    os.write(pipe, f"{'x' * first}\nkey: {SECRET}\nrefused\n".encode())
    os.close(pipe)
    output.finish(60.0)
    lines = output.last_lines(20, 8_192)
    assert "before" not in lines
    assert lines.endswith(f"key: {SECRET}\nrefused")
    cut = Mask([SECRET])(output.last_lines(20, len(SECRET)))
    assert cut == "refused"
