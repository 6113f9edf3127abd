"""Errors of machines that are reached over SSH, by whether trying again helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dispatcher.errors import PassingBackendError, PermanentBackendError

if TYPE_CHECKING:
    from dispatcher.ssh.host_key import HostKey


class HostUnreachable(PassingBackendError):
    """Raised when no SSH server answers in time: no such name, refused, silent, cut off."""


class ConnectionLost(PassingBackendError):
    """Raised when a connection that stood has ended. An order may or may not be carried out."""


class CommandTimedOut(PassingBackendError):
    """Raised when a command ran past its limit.

    A command's process group was sent SIGKILL, where the text does not say otherwise.
    """


class LoginRefused(PermanentBackendError):
    """Raised when the machine does not let this user in with what we have."""


class HostKeyUnknown(PermanentBackendError):
    """Raised when no file of known hosts names the machine: nothing was sent to it.

    ``key`` is the one that it showed.
    """

    key: HostKey


class HostKeyChanged(PermanentBackendError):
    """Raised when a machine shows a key other than the known one: an attacker may be in between.

    Nothing was sent to it. ``key`` is the one that it showed.
    """

    key: HostKey


class SessionRefused(PassingBackendError):
    """Raised when the machine lets us in and runs nothing."""


class ForwardRefused(PermanentBackendError):
    """Raised when the machine forwards no ports."""
