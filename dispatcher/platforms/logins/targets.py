"""The targets of logins, made of the sections that describe them; secrets are looked up late."""

from __future__ import annotations

from dispatcher.errors import PermanentBackendError
from dispatcher.experiment.references import resolve_reference
from dispatcher.platforms.logins.section import LoginConfig, ReachedConfig
from dispatcher.ssh import SshConnection, SshTarget, connect
from dispatcher.ssh.login import Dial

#: A login that stands.
Connection = SshConnection


def log_in(target: SshTarget, dial: Dial | None = None) -> SshConnection:
    """Log in. Blocks.

    Args:
        target: the machine, and how to log in.
        dial: as for :func:`~dispatcher.ssh.connect`.

    Raises:
        BackendError: see :func:`~dispatcher.ssh.connect`; or what that needs is not installed.
    """
    try:
        return connect(target, dial=dial)
    except ModuleNotFoundError as error:
        raise PermanentBackendError(
            f"machines are reached by {error.name}, which is not installed here",
            hint="pip install 'bequeath[ssh]'",
        ) from error


def label_of(login: LoginConfig) -> str:
    """The address of a machine, for people; no secret is looked up."""
    return SshTarget(login.host, login.port or 0, login.user or "").label


def target_of(login: LoginConfig) -> SshTarget:
    """The target of a login, with secrets looked up now. Raises ``PermanentBackendError``."""
    jump = login.jump if isinstance(login, ReachedConfig) else None
    return SshTarget(
        host=login.host,
        port=login.port or 0,
        user=login.user or "",
        key_file=login.key_file,
        password=_secret(login.password),
        passphrase=_secret(login.passphrase),
        known_hosts=login.known_hosts,
        jump=target_of(jump) if jump is not None else None,
    )


def _secret(reference: str | None) -> str:
    if reference is None:
        return ""
    try:
        return resolve_reference(reference)
    except ValueError as error:
        raise PermanentBackendError(f"a password {error}") from error
