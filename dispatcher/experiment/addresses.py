"""Keys that name the address at which agents reach the head."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dispatcher.experiment.fields import Text

_LOGIN = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[^\]]+\]|[^@:\s]+)(?::(?P<port>[0-9]+))?")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[^:/@\s\[\]]+)(?::(?P<port>[0-9]{1,5}))?")
_WITH_PORT = re.compile(r"(^[^:]+|\]):[0-9]+$")


def _check_address(text: str) -> str:
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"] or 1) > 65535:
        raise ValueError(f"must be HOST or HOST:PORT, an IPv6 address in brackets, not {text!r}")
    return text


HeadAddress = Annotated[
    Annotated[Text, AfterValidator(_check_address)] | None,
    Field(
        description="Address of this machine at which agents reach the head by themselves, `HOST` "
        "or `HOST:PORT`, by CURVE; `channel` must listen there."
    ),
]
"""For a key ``headAddress``. A platform whose agents have another way says so in a description of
its own: ``Annotated[HeadAddress, Field(description=...)]``."""


def parts_of_login(value: Any) -> Any:
    """Read ``user@host:port`` as the keys of a section; anything else stays as it is."""
    match = _LOGIN.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    keys = {key: text for key, text in match.groupdict().items() if text is not None}
    keys["host"] = keys["host"].strip("[]")
    return keys | ({"port": int(keys["port"])} if "port" in keys else {})


def dialed(named: str | None, door: tuple[str, int]) -> str:
    """Return the host and the port that an agent dials.

    Args:
        named: by the file, with a port or without; None: it names nothing.
        door: address and port at which the head listens.
    """
    host, port = door
    if named:
        return named if has_port(named) else f"{named}:{port}"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def has_port(named: str) -> bool:
    """Whether an address names a port."""
    return _WITH_PORT.search(named) is not None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone. Names but ``localhost`` are not looked up."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_any(host: str) -> bool:
    """Whether who listens on a host does so on all addresses, none of which it names."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return host == "*"


def may_lead_to(named: str, host: str) -> bool:
    """Whether an address may lead to who listens on a host of this machine. One with a port of its
    own may be that of a gate that leads anywhere.

    Args:
        named: by the file.
        host: on which the head listens.
    """
    return has_port(named) or is_any(host) or is_loopback(named) == is_loopback(host)
