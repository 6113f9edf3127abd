"""The keys that an agent offers to a jump host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ed25519

from trial_runtime.endpoint import JumpHost
from trial_runtime.tunnel.tunnel import NoWay, authenticate


class Transport:
    """A jump host that takes a kind of keys."""

    def __init__(self, takes: str) -> None:
        self._takes = takes
        self._is_in = False

    def auth_publickey(self, user: str, key: Any) -> None:
        self._is_in = key.get_name() == self._takes

    def is_authenticated(self) -> bool:
        return self._is_in


@pytest.fixture
def jump(tmp_path: Path) -> JumpHost:
    keys: dict[str, Any] = {
        "dsa": dsa.generate_private_key(1024),
        "ed25519": ed25519.Ed25519PrivateKey.generate(),
    }
    for name, key in keys.items():
        content = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH
            if name == "ed25519"
            else serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        (tmp_path / name).write_bytes(content)
    (tmp_path / "text").write_text("no key")
    files = tuple(str(tmp_path / name) for name in ("none", "text", "dsa", "ed25519"))
    return JumpHost("h", 22, "u", ("ssh-ed25519 AAAA",), files)


def test_a_key_that_cannot_be_used_does_not_keep_the_next_from_being_tried(jump: JumpHost) -> None:
    """Mutation: one of a kind that nobody knows any more ends it with a traceback."""
    transport = Transport("ssh-ed25519")
    authenticate(jump, transport)
    assert transport.is_authenticated()


def test_each_that_was_tried_is_named(jump: JumpHost) -> None:
    with pytest.raises(NoWay) as caught:
        authenticate(jump, Transport("ssh-rsa"))
    text = str(caught.value)
    assert "text, which cannot be used" in text
    assert "dsa, whose kind paramiko does not know" in text
    assert text.endswith("ed25519")
