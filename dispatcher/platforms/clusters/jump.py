"""A machine with an SSH server by which agents of a cluster reach the head, and its section."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from dispatcher.errors import BackendError, PermanentBackendError
from dispatcher.experiment.addresses import HeadAddress, dialed, is_any, may_lead_to, parts_of_login
from dispatcher.experiment.fields import Count, ResolvedPath, Section, Text
from dispatcher.experiment.platform_base import KeyProblem
from trial_runtime.endpoint import JumpHost
from tuners.plain_json import JsonPath

if TYPE_CHECKING:
    from dispatcher.experiment.all_keys import AllKeys
    from dispatcher.ssh.user_config import Hop

#: Keys that are tried there if the file names none, as OpenSSH does.
USUAL_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


class JumpHostConfig(Section):
    """A machine that nodes can log in to by SSH, and from which the head is reached."""

    host: Annotated[
        Text,
        Field(
            description="Name or address at which nodes reach it; its key is looked up in the "
            "known hosts of this machine."
        ),
    ]
    port: Annotated[
        Annotated[Count, Field(le=65535)] | None,
        Field(description="Port of its SSH server; 22 if not given."),
    ] = None
    user: Annotated[Text | None, Field(description="User who logs in there.")] = None
    key_file: Annotated[
        Text | None,
        Field(
            description="Private key without a passphrase, as nodes have it; `~` is the home "
            "there. `~/.ssh/id_*` if not given. It is never sent."
        ),
    ] = None
    known_hosts: Annotated[
        ResolvedPath | None,
        Field(description="File here that knows its key; the user's own if not given."),
    ] = None
    head_address: Annotated[
        HeadAddress,
        Field(
            description="Address of this machine at which that one reaches the head, `HOST` or "
            "`HOST:PORT`; `channel` must listen there. If not given it is this machine itself."
        ),
    ] = None

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``user@host:port``."""
        return parts_of_login(value)


def jump_of(config: JumpHostConfig, door: tuple[str, int]) -> tuple[str, JumpHost]:
    """The address that a jump host dials, and what an agent has to know of it. Reads files.

    Args:
        config: its section.
        door: address and port at which the head listens.

    Raises:
        BackendError: its key is not known here.
    """
    hop = _hop(config)
    keys = _known_keys(hop, config)
    host, port = door
    here = dialed(None, ("127.0.0.1" if is_any(host) else host, port))
    address = here if config.head_address is None else dialed(config.head_address, door)
    files = USUAL_KEYS if config.key_file is None else (config.key_file,)
    return address, JumpHost(hop.host, hop.port, hop.user, keys, files)


def _hop(config: JumpHostConfig) -> Hop:
    from dispatcher.ssh.target import SshTarget
    from dispatcher.ssh.user_config import way_to

    target = SshTarget(
        config.host, config.port or 0, config.user or "", known_hosts=config.known_hosts
    )
    try:
        return way_to(target)[-1]
    except ModuleNotFoundError as error:
        text = f"a jump host needs {error.name}, which is not installed here"
        raise PermanentBackendError(text, hint="pip install 'bequeath[ssh]'") from error


def _known_keys(hop: Hop, config: JumpHostConfig) -> tuple[str, ...]:
    from dispatcher.ssh import known_hosts

    known = known_hosts.KnownKeys.of(hop.known_as, known_hosts.read(hop.known_hosts))
    keys = tuple(x.key.text for x in known.trusted() if known.has(x.key))
    if keys:
        return keys
    raise PermanentBackendError(
        "its key is not known here, and agents log in to no machine that anybody could be",
        hint=f"bequeath hosts add {config.host}" + (f":{config.port}" if config.port else ""),
        where=hop.label,
    )


def check_jump(config: JumpHostConfig, at: JsonPath, experiment: AllKeys) -> Iterator[KeyProblem]:
    """Yield why no agent would come through it, as far as this machine's disk says.

    Args:
        config: its section.
        at: its path.
        experiment: the whole file.
    """
    host = experiment.channel.listens_on
    named = config.head_address
    if named is not None and not may_lead_to(named, host):
        yield KeyProblem(
            (*at, "headAddress"),
            f"is {named}, and the head listens on {host} only ('channel')",
            "leave it out where the jump host is this machine, or write, beside 'trainingService', "
            "'channel: {transport: tcp, host: ADDRESS, beyondThisMachine: true}'",
        )
    if config.known_hosts is not None and not os.path.isfile(config.known_hosts):
        yield KeyProblem((*at, "knownHosts"), f"does not exist: {config.known_hosts}")
        return
    try:
        jump_of(config, (host, 1))
    except BackendError as error:
        where = f"{error.where}: " if error.where else ""
        yield KeyProblem(at, f"leads nowhere: {where}{error.message}", error.hint)
