"""A machine in an experiment file that is logged in to, by whichever platform: its keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo

from dispatcher.experiment.addresses import parts_of_login
from dispatcher.experiment.fields import Count, ResolvedPath, Section, Text, absolute_reference
from dispatcher.experiment.references import ENV, FILE


def _check_reference(text: str, info: ValidationInfo) -> str:
    if not text.startswith((ENV, FILE)) or text in (ENV, FILE):
        # The text is not repeated: it may be a secret, which no log may hold.
        raise ValueError(
            "must be a reference, 'env:NAME' or 'file:PATH': secrets stand in no experiment file"
        )
    return absolute_reference(text, info)


def _check_absolute(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f"must be a path from the root of that machine, not {text!r}")
    return text.rstrip("/") or "/"


Secret = Annotated[Text, AfterValidator(_check_reference)]
Port = Annotated[Count, Field(le=65535)]
FolderThere = Annotated[Text, AfterValidator(_check_absolute)]

LOGIN_NAMES = {
    "ip": "host",
    "username": "user",
    "passwd": "password",
    "sshKeyFile": "keyFile",
    "sshKeyPath": "keyFile",
    "sshPassphrase": "passphrase",
}


class LoginConfig(Section):
    """A machine and how to log in to it; what is not given is as `~/.ssh/config` has it."""

    other_names: ClassVar[Mapping[str, str]] = LOGIN_NAMES

    host: Annotated[Text, Field(description="Name, address, or `Host` of `~/.ssh/config`.")]
    port: Annotated[Port | None, Field(description="Port of its SSH server; 22 if not given.")] = (
        None
    )
    user: Annotated[Text | None, Field(description="User who logs in there.")] = None
    key_file: Annotated[
        ResolvedPath | None,
        Field(description="Private key; if not given, the SSH agent's and `~/.ssh/id_*`."),
    ] = None
    passphrase: Annotated[
        Secret | None, Field(description="Passphrase of `keyFile`, as `env:NAME` or `file:PATH`.")
    ] = None
    password: Annotated[
        Secret | None,
        Field(description="Password, as `env:NAME` or `file:PATH`; keys are tried first."),
    ] = None
    known_hosts: Annotated[
        ResolvedPath | None,
        Field(description="File that must know the machine's key; the user's own if not given."),
    ] = None

    @property
    def label(self) -> str:
        """``host`` or ``host:port``."""
        return f"{self.host}:{self.port}" if self.port else self.host


class JumpConfig(LoginConfig):
    """The machine by way of which another one is reached."""

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``user@host:port``."""
        return parts_of_login(value)


class ReachedConfig(LoginConfig):
    """A machine that may be reached by way of another one."""

    jump: Annotated[
        JumpConfig | None,
        Field(description="Machine through which it is reached: `user@host:port`, or keys."),
    ] = None
