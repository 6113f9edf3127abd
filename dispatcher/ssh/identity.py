"""Keys to log in with: keys of the agent, then keys in files; a password is tried last."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dispatcher.ssh.errors import LoginRefused
from dispatcher.ssh.user_config import Hop


@dataclass(frozen=True)
class Key:
    """A key that can sign, and its name in messages."""

    key: Any
    name: str


@dataclass(frozen=True)
class Locked:
    """A key file that cannot be opened: it has a passphrase, and we have none."""

    path: Path


@contextlib.contextmanager
def agent_keys(hop: Hop) -> Iterator[list[Any]]:
    """The keys that the user's agent holds; none where no agent runs. Talks to the agent."""
    if not hop.uses_agent or not os.environ.get("SSH_AUTH_SOCK"):
        yield []
        return
    import paramiko

    try:
        agent = paramiko.Agent()
    except (paramiko.SSHException, OSError):
        yield []
        return
    try:
        yield list(agent.get_keys())
    finally:
        agent.close()


def keys_for(hop: Hop, of_agent: list[Any]) -> Iterator[Key | Locked]:
    """The keys to offer, in order. A key that is in the agent and in a file comes once.

    Raises:
        LoginRefused: the key file that was named is not there, is no key, or its passphrase
            is wrong.
    """
    held = {bytes(key.asbytes()): key for key in of_agent}
    offered: set[bytes] = set()
    if not hop.only_these_keys:
        for blob, key in held.items():
            offered.add(blob)
            yield Key(key, f"a key of the agent ({getattr(key, 'comment', '') or key.get_name()})")
    for path in hop.key_files:
        named = hop.target.key_file is not None
        public = _public(path)
        if public is not None and public in held:
            if public not in offered:
                offered.add(public)
                yield Key(held[public], f"{path} (by the agent)")
            continue
        read = _read(path, hop.target.passphrase, named=named, host=hop.label)
        if isinstance(read, Locked) or (read is not None and _blob(read) not in offered):
            yield read


def _blob(key: Key) -> bytes:
    return bytes(key.key.asbytes())


def _public(path: Path) -> bytes | None:
    """The public half, from the file beside the key."""
    import base64
    import binascii

    try:
        fields = path.with_name(f"{path.name}.pub").read_text(errors="replace").split()
        return base64.b64decode(fields[1], validate=True)
    except (OSError, IndexError, ValueError, binascii.Error):
        return None


def _read(path: Path, passphrase: str, *, named: bool, host: str) -> Key | Locked | None:
    import paramiko
    from cryptography.exceptions import UnsupportedAlgorithm

    refused: str
    try:
        return Key(paramiko.PKey.from_path(path, passphrase.encode() or None), str(path))
    except (FileNotFoundError, NotADirectoryError):
        refused = "there is no such key file"
    except OSError as error:
        refused = f"the key file cannot be read: {error.strerror}"
    except TypeError:
        # cryptography raises it for a key with a passphrase where none was given, and for a
        # passphrase of a key without one.
        if not passphrase:
            return Locked(path)
        return _read(path, "", named=named, host=host)
    except paramiko.PasswordRequiredException:
        return Locked(path)
    except (ValueError, UnsupportedAlgorithm, paramiko.SSHException, paramiko.UnknownKeyType):
        wrong = "its passphrase is wrong, or it " if passphrase else "it "
        refused = f"the key file cannot be used: {wrong}is no private key that we know"
    if named:
        raise LoginRefused(f"{refused}: {path}", where=host)
    return None
