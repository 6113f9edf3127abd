"""The file in which ``bequeath hosts add`` records keys of machines, read for every SSH."""

from __future__ import annotations

import os
from pathlib import Path

_HOME_VARIABLE = "BEQUEATH_HOME"


def recorded_hosts() -> Path:
    """The path of the file, below BEQUEATH_HOME or in the user's configuration.

    It need not exist.
    """
    home = os.environ.get(_HOME_VARIABLE)
    if home:
        return Path(home).expanduser() / "known_hosts"
    usual = os.environ.get("XDG_CONFIG_HOME", "")
    above = Path(usual) if usual.startswith("/") else Path("~/.config").expanduser()
    return above / "bequeath" / "known_hosts"
