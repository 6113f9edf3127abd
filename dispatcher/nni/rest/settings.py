"""The settings of an endpoint: which experiment, at which port, below which prefix."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dispatcher.errors import UserError
from dispatcher.nni.rest.peers import is_known_here
from dispatcher.web.settings import WebSettings, state_folder

#: The port where none is named; NNI's own.
PORT: Final = 8080

#: The path of NNI's REST below the prefix.
API: Final = "/api/v1/nni"

#: Letters from which on a prefix is a secret that cannot be guessed.
SECRET_LETTERS: Final = 16

_PREFIX: Final = re.compile(r"[A-Za-z0-9_.~-]{1,100}(/[A-Za-z0-9_.~-]{1,100}){0,9}")


def nni_state() -> Path:
    """Return the folder of what endpoints are open, and of their logs, for this user alone."""
    return state_folder().parent / "nni"


@dataclass(frozen=True, kw_only=True)
class EndpointSettings:
    """The settings of one endpoint.

    Attributes:
        folder: of the experiment.
        port: 0: any that is free.
        prefix: the path below which it answers, without slashes around it; empty for none.
        page: the folder of NNI's own page; None if there is none.
        until_over: close it when the experiment is stopped, or over and nobody asks any more.
        state: see :func:`nni_state`.
    """

    folder: Path
    port: int = PORT
    prefix: str = ""
    page: Path | None = None
    until_over: bool = False
    state: Path = field(default_factory=nni_state)

    @property
    def path(self) -> str:
        """The prefix with its slash; empty for none."""
        return f"/{self.prefix}" if self.prefix else ""

    @property
    def address(self) -> str:
        """The beginning of its addresses."""
        return f"http://127.0.0.1:{self.port}{self.path}"

    @property
    def is_secret(self) -> bool:
        """Whether who knows the prefix has been given it."""
        return len(self.prefix) >= SECRET_LETTERS

    def as_of_a_page(self) -> WebSettings:
        """Return the same, as the rules for hosts and origins of the page read it."""
        return WebSettings(host="127.0.0.1", port=self.port, state=self.state)


def checked_prefix(given: str | None) -> str:
    """Return the prefix to take: one that was given, or a secret where the system does not say
    whose a connection is.

    Raises:
        UserError: it is no prefix, or one that can be guessed where it must not.
    """
    prefix = (given or "").strip("/")
    if prefix and not _PREFIX.fullmatch(prefix):
        raise UserError(
            f"{prefix[:200]!r} is no prefix of paths",
            hint="letters, digits, '-', '_', '.' and '~', with '/' between parts",
            where="--url_prefix",
        )
    if is_known_here():
        return prefix
    if not prefix:
        return secrets.token_urlsafe(SECRET_LETTERS)
    if len(prefix) < SECRET_LETTERS:
        raise UserError(
            "this system does not say whose a connection is, so the prefix must be a secret",
            hint=f"leave it out, or take one of at least {SECRET_LETTERS} letters",
            where="--url_prefix",
        )
    return prefix
