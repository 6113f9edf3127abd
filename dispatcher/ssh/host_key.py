"""A machine's public key, and the fingerprint under which people compare it."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True)
class HostKey:
    """A public key. ``kind`` as in ``ssh-ed25519``; ``blob`` is the key as the protocol has it."""

    kind: str
    blob: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """``SHA256:…`` as ``ssh-keygen -l`` prints it."""
        digest = hashlib.sha256(self.blob).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    @property
    def text(self) -> str:
        """``ssh-ed25519 AAAA…``, as it stands in a file."""
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"
