"""Machines reached over SSH: logging in, running commands, ports.

``connect(SshTarget("gpu1"))`` gives a connection that many threads may use. Unknown and
changed machines are refused. Errors say whether trying again helps: passing ones are
:class:`~dispatcher.errors.PassingBackendError`. Needs the extra ``ssh`` (paramiko), which is
imported when something is connected to.
"""

from dispatcher.ssh.connection import SshConnection, connect
from dispatcher.ssh.errors import (
    CommandTimedOut,
    ConnectionLost,
    ForwardRefused,
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    LoginRefused,
    SessionRefused,
)
from dispatcher.ssh.host_key import HostKey
from dispatcher.ssh.running import Ran
from dispatcher.ssh.target import SshTarget

__all__ = [
    "CommandTimedOut",
    "ConnectionLost",
    "ForwardRefused",
    "HostKey",
    "HostKeyChanged",
    "HostKeyUnknown",
    "HostUnreachable",
    "LoginRefused",
    "Ran",
    "SessionRefused",
    "SshConnection",
    "SshTarget",
    "connect",
]
