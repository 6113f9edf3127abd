"""Asks a machine for its host keys without logging in to it, to make it known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dispatcher.ssh import known_hosts
from dispatcher.ssh.errors import HostUnreachable
from dispatcher.ssh.host_key import HostKey
from dispatcher.ssh.link import Through
from dispatcher.ssh.login import Dial, check_key, handshake, shown_key
from dispatcher.ssh.target import SshTarget
from dispatcher.ssh.user_config import way_to

#: Asked for one after another: a server shows one key a handshake.
_KINDS = (
    ["ssh-ed25519"],
    ["ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"],
    ["rsa-sha2-512", "rsa-sha2-256"],
)


@dataclass(frozen=True)
class OfferedKeys:
    """The keys that a machine shows; ``name`` is its name in files of known hosts."""

    name: str
    keys: tuple[HostKey, ...]
    known: bool  # that it shows one of them is known already
    known_keys: tuple[HostKey, ...] = ()  # those of them that are known


def look_at_keys(target: SshTarget, *, dial: Dial | None = None) -> OfferedKeys:
    """Ask a machine for its keys. Logs in to jump hosts only, and those must be known.

    Raises:
        HostUnreachable: nobody answers there.
        HostKeyChanged: another key is known of it.
        HostKeyUnknown, LoginRefused: of a jump host.
    """
    way = way_to(target)
    hop = way[-1]
    with Through(way[:-1], dial) as reach:
        keys: dict[bytes, HostKey] = {}
        for kinds in _KINDS:
            transport = handshake(hop, reach, kinds)
            try:
                key = shown_key(transport)
            finally:
                transport.close()
            keys.setdefault(key.blob, key)
    if not keys:
        raise HostUnreachable("shows no key", where=hop.label)
    known = known_hosts.KnownKeys.of(hop.known_as, known_hosts.read(hop.known_hosts))
    known_keys = tuple(key for key in keys.values() if known.has(key))
    is_known = bool(known_keys)
    if known.trusted() and not is_known:
        check_key(hop, next(iter(keys.values())))
    return OfferedKeys(hop.known_as, tuple(keys.values()), is_known, known_keys)


def names_of(target: SshTarget) -> str:
    """The name of a machine in files of known hosts. Asks nobody."""
    return way_to(target)[-1].known_as


def our_hosts() -> list[known_hosts.KnownHostsLine]:
    """The entries of our own file."""
    return known_hosts.read([known_hosts.our_file()])


def learn(shown: OfferedKeys, fingerprint: str = "") -> Path:
    """Record a machine in our own file; returns its path.

    Each key was shown in a connection of its own, so one that is vouched for proves nothing about
    the others: of a machine that is known, or has a certain ``fingerprint``, only the keys
    that are vouched for by that are recorded.
    """
    path = known_hosts.our_file()
    keys = shown.known_keys or shown.keys
    if fingerprint:
        keys = tuple(key for key in shown.keys if key.fingerprint == fingerprint)
    known_hosts.add(path, shown.name, keys)
    return path


def forget(target: SshTarget) -> int:
    """Drop a machine from our own file; returns how many keys."""
    return known_hosts.remove(known_hosts.our_file(), names_of(target))
