"""CURVE key pairs of one experiment, in files that only their owner can read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import zmq


class CurveKeys(NamedTuple):
    """A pair of Z85 texts of 40 characters each."""

    public: str
    secret: str

    def __repr__(self) -> str:
        return f"CurveKeys(public={self.public!r})"  # a secret has no place in a traceback

    @classmethod
    def fresh(cls) -> CurveKeys:
        """Make a new pair."""
        public, secret = zmq.curve_keypair()
        return cls(public.decode(), secret.decode())

    @classmethod
    def kept(cls, path: Path) -> CurveKeys:
        """Read the pair of this file, or make it at the first call (mode 0600).

        A head that takes over must show the agents the key that their configuration names.
        """
        try:
            public, secret = path.read_text().split()
            path.chmod(0o600)  # as it was made, whatever has been done to it since
            return cls(public, secret)
        except FileNotFoundError:
            keys = cls.fresh()
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(f"{keys.public}\n{keys.secret}\n")
            return keys
