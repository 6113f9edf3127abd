"""Pieces come in their order, whatever the server makes of the requests."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from trial_runtime.weights.remote.sftp import PipelinedReader

pytest.importorskip("paramiko")


class Server:
    """Answers requests in any order, and with less than was asked for."""

    def __init__(self, data: bytes, seed: int, fails_at: int = -1) -> None:
        self.data = data
        self.random = random.Random(seed)
        self.waiting: list[tuple[Any, int, int, int]] = []
        self.asked = self.most = 0
        self.fails_at = fails_at

    def open(self, _path: str, _mode: str) -> Any:
        status = SimpleNamespace(st_size=len(self.data))
        return SimpleNamespace(handle=b"h", stat=lambda: status, close=lambda: None)

    def _async_request(self, reader: Any, _kind: int, _handle: bytes, at: Any, nbytes: int) -> int:
        self.asked += 1
        offset = int(at)
        self.waiting.append((reader, offset, nbytes, self.asked))
        self.most = max(self.most, len(self.waiting))
        return self.asked

    def _read_response(self) -> None:
        each = self.random.randrange(len(self.waiting))
        reader, offset, nbytes, number = self.waiting.pop(each)
        if 0 <= self.fails_at < offset + nbytes:
            reader._async_response(101, SimpleNamespace(), number)
            return
        piece = self.data[offset : offset + self.random.randint(1, nbytes)]
        reader._async_response(103, SimpleNamespace(get_string=lambda: piece), number)

    def _convert_status(self, _message: Any) -> None:
        raise OSError("Failure")


def read_all(reader: PipelinedReader) -> bytes:
    found = b""
    while piece := reader.read():
        found += piece
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("offset", [0, 5_000, 99_999, 100_000])
def test_answers_in_any_order_and_of_any_length(seed: int, offset: int) -> None:
    data = random.Random(seed).randbytes(100_000)
    server = Server(data, seed)
    assert read_all(PipelinedReader(server, "file", offset)) == data[offset:]


def test_no_more_is_under_way_than_is_allowed() -> None:
    server = Server(bytes(20 << 20), 1)
    reader = PipelinedReader(server, "file", 0)
    for _ in range(50):
        assert reader.read()
    assert 200 <= server.most <= 257


def test_a_failure_is_raised_where_it_belongs() -> None:
    reader = PipelinedReader(Server(bytes(200_000), 1, fails_at=100_000), "file", 0)
    with pytest.raises(OSError, match="Failure"):
        read_all(reader)
