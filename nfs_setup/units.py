"""Units of systemd for a share: mounted at the first look, let go when nobody looks."""

from __future__ import annotations

import os

from nfs_setup.host import Files
from nfs_setup.mount_table import mounts

#: Seconds without a user after which systemd unmounts it (it comes back at the next look).
_IDLE_S = 600

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:_.")


def unit_name(point: str) -> str:
    r"""The name systemd demands for a mount point, without its ending (systemd.unit(5)).

    >>> unit_name("/mnt/my weights")
    'mnt-my\\x20weights'
    """
    parts = []
    for byte in os.fsencode(point.strip("/")):
        if byte == 0x2F:
            parts.append("-")
        elif byte in _PLAIN and not (byte == 0x2E and not parts):
            parts.append(chr(byte))
        else:
            parts.append(f"\\x{byte:02x}")
    return "".join(parts)


def mount_unit(source: str, point: str, options: tuple[str, ...]) -> str:
    """Return the unit that mounts a share.

    Args:
        source: ``server:/path``.
        point: the mount point, absolute.
        options: of the mount.
    """
    return (
        "# Written by 'bequeath nfs client'; 'bequeath nfs undo' removes it.\n"
        "[Unit]\n"
        f"Description=Share {_value(source)}\n"
        "After=network-online.target\n"
        "Wants=network-online.target\n\n"
        "[Mount]\n"
        f"What={_value(source)}\n"
        f"Where={_value(point)}\n"
        "Type=nfs4\n"
        f"Options={','.join(options)}\n"
        "TimeoutSec=60\n"
    )


def automount_unit(source: str, point: str) -> str:
    """Return the unit that mounts it at the first look: this machine boots without the server."""
    return (
        "# Written by 'bequeath nfs client'; 'bequeath nfs undo' removes it.\n"
        "[Unit]\n"
        f"Description=Share {_value(source)} at the first look\n\n"
        "[Automount]\n"
        f"Where={_value(point)}\n"
        f"TimeoutIdleSec={_IDLE_S}\n\n"
        "[Install]\n"
        "WantedBy=remote-fs.target\n"
    )


def waits_at(files: Files, point: str) -> bool:
    """Whether an automount waits there."""
    return any(m.point == point and m.kind == "autofs" for m in mounts(files))


def _value(text: str) -> str:
    """Escape percent signs, which would begin a specifier."""
    return text.replace("%", "%%")
