"""Errors of a remote root: whether they may pass, and their names here.

Each library that fsspec drives has errors of its own. The table names them by module, so that
none is imported which is not in use.
"""

from __future__ import annotations

import sys
from typing import Final

from trial_runtime.errors import WeightsError

#: Errors beside ``OSError`` that stand for trouble on the way or at the other end.
_FAMILIES: Final = {
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "aiohttp": ("ClientError",),
    "paramiko": ("SSHException",),
    "gcsfs.retry": ("HttpError",),
    "google.auth.exceptions": ("GoogleAuthError",),
    "azure.core.exceptions": ("AzureError",),
    "ftplib": ("Error",),
    "requests": ("RequestException",),
}

#: Trying again does not mend these, whatever their base.
_LASTING: Final = {
    "botocore.exceptions": (
        "NoCredentialsError",
        "PartialCredentialsError",
        "ParamValidationError",
        "ProfileNotFound",
        "InvalidEndpointDiscoveryConfigurationError",
    ),
    "paramiko": ("AuthenticationException", "BadHostKeyException"),
    "ftplib": ("error_perm",),
}


class RemoteError(WeightsError):
    """Base of errors of a remote weights root."""


class RemoteUnavailable(RemoteError):
    """Raised when a remote root did not answer within the bound; later it may."""


class RemoteRefused(RemoteError):
    """Raised when a remote root will not do what is asked of it: no permission, no such bucket,
    an unknown host key."""


def known() -> tuple[type[BaseException], ...]:
    """The errors that file systems in use may raise."""
    return (OSError, EOFError, ValueError, *_classes(_FAMILIES), *_classes(_LASTING))


def as_remote_error(error: BaseException, where: str) -> RemoteError:
    """An error of :func:`known` as one of ours."""
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, _classes(_LASTING)):
        return RemoteRefused(f"{text} ({type(error).__name__})", hint=_advice(error), where=where)
    if isinstance(error, FileNotFoundError):
        return RemoteRefused(f"there is no such place: {text}", hint=_advice(error), where=where)
    if isinstance(error, PermissionError):
        return RemoteRefused(f"may not be used: {text}", hint=_advice(error), where=where)
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return RemoteRefused(f"cannot be used so: {text}", hint=_advice(error), where=where)
    return RemoteUnavailable(
        f"does not do its work: {text} ({type(error).__name__})",
        hint="check that it runs, that it can be reached from here, and that it has room",
        where=where,
    )


def _advice(error: BaseException) -> str:
    name = type(error).__name__
    if name in ("AuthenticationException", "NoCredentialsError", "PartialCredentialsError"):
        return "name the credentials in weightsRootOptions, by env:NAME or file:PATH"
    if name == "BadHostKeyException":
        return "the host shows another key than known_hosts has: make sure who it is"
    if isinstance(error, FileNotFoundError):
        return "make the bucket or folder first, and check its name"
    if isinstance(error, PermissionError):
        return "reading, writing, listing and removing are needed there; check the credentials"
    return "check weightsRoot and weightsRootOptions"


def _classes(table: dict[str, tuple[str, ...]]) -> tuple[type[BaseException], ...]:
    return tuple(
        found
        for module, names in table.items()
        if module in sys.modules
        for name in names
        if isinstance(found := getattr(sys.modules[module], name, None), type)
    )
