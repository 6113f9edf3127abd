"""What a command is fed goes in as few packets as there can be."""

from __future__ import annotations

import io
from typing import Any

import paramiko

from dispatcher.ssh import running

PACKET = 32 << 10
WINDOW = 2 << 20


class Recording:
    """Stands for a transport: keeps what would be sent."""

    def __init__(self) -> None:
        self.data: list[bytes] = []

    def get_log_channel(self) -> str:
        return "paramiko.transport"

    def _sanitize_packet_size(self, size: int) -> int:
        return size

    def _sanitize_window_size(self, size: int) -> int:
        return size

    def _unlink_channel(self, _: int) -> None:
        pass

    def _send_user_message(self, message: Any) -> None:
        message.rewind()
        if message.get_byte() == paramiko.common.cMSG_CHANNEL_DATA:
            message.get_int()
            self.data.append(message.get_string())


def test_no_small_packet_goes_between_full_ones() -> None:
    """Mutation: each 64 KiB are two packets and the 128 bytes that were left over."""
    channel, recording = paramiko.Channel(1), Recording()
    channel._set_transport(recording)  # type: ignore[arg-type]
    channel._set_window(WINDOW, PACKET)
    channel._set_remote_channel(1, WINDOW, PACKET)
    content = bytes(range(256)) * 4000
    running._feed(channel, b"a line\n", io.BytesIO(content))
    assert recording.data[0] == b"a line\n"
    sent = recording.data[1:]
    assert b"".join(sent) == content
    full = PACKET - 64
    assert [len(data) for data in sent[:-1]] == [full] * (len(content) // full)
    assert len(sent[-1]) == len(content) % full
