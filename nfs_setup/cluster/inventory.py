"""An inventory: one server and its clients, read from plain values and checked as a whole."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

from nfs_setup import exports
from nfs_setup.client import checked_source
from nfs_setup.cluster.members import Inventory, Login, Member, is_address, is_host
from nfs_setup.cluster.reading import (
    InventoryRefused,
    KeyPath,
    Kind,
    Places,
    Reader,
    anything,
    camel,
    number,
    port,
    quoted,
    reference,
    switch,
    text,
)
from nfs_setup.errors import RequestRefused
from nfs_setup.paths import checked_path
from nfs_setup.request import ClientRequest, ServerRequest

_LOGIN = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[^\]]+\]|[^@:\s]+)(?::(?P<port>[0-9]{1,5}))?"
)

_KINDS: dict[str, Kind] = {"str": text, "bool": switch, "int": number}


def _options(form: type[Any], without: tuple[str, ...]) -> dict[str, Kind]:
    """Return the options of a request as keys of a file."""
    return {
        camel(field.name): _KINDS[str(field.type)]
        for field in fields(form)
        if field.name not in without and field.default is not MISSING
    }


_SHARE: dict[str, Kind] = {
    "folder": text,
    **_options(ServerRequest, ("maker", "allow_wildcards", "allow_everybody", "dry_run")),
    "mode": quoted,
}
_MOUNT: dict[str, Kind] = {"point": text, **_options(ClientRequest, ("dry_run",))}
_SSH: dict[str, Kind] = {
    "port": port,
    "user": text,
    "keyFile": text,
    "passphrase": reference,
    "password": reference,
    "knownHosts": text,
}
_COMMON: dict[str, Kind] = {**_SSH, "jump": anything, "python": text}
_JUMP: dict[str, Kind] = {"host": text, **_SSH}
_HOST: dict[str, Kind] = {"host": text, "address": text, "local": switch, **_COMMON}
_CLIENT: dict[str, Kind] = {**_HOST, "point": text}
_ROOT: dict[str, Kind] = {
    "share": anything,
    "mount": anything,
    "ssh": anything,
    "server": anything,
    "clients": anything,
}


def inventory_of(values: Any, places: Places) -> Inventory:
    """Turn plain values into the server and its clients. ``places`` gives the place of each value.

    Raises:
        InventoryRefused: with everything that is wrong.
    """
    reader = _InventoryReader(places)
    inventory = reader.read(values)
    if reader.errors or inventory is None:
        raise InventoryRefused(reader.errors)
    return inventory


class _InventoryReader(Reader):
    def read(self, values: Any) -> Inventory | None:
        root = self.section(values, (), _ROOT)
        share = self.section(root.get("share", {}), ("share",), _SHARE)
        mount = self.section(root.get("mount", {}), ("mount",), _MOUNT)
        ssh = self.section(root.get("ssh", {}), ("ssh",), _COMMON)
        folder = self._path(share, ("share", "folder"), "folder")
        server = self._host(root.get("server"), ("server",), _HOST, ssh)
        clients = [
            (path, found)
            for path, one in self._each_client(root.get("clients"))
            if (found := self._host(one, path, _CLIENT, ssh)) is not None
        ]
        for path, client in clients:
            if not client.get("point"):
                client["point"] = mount.get("point", "")
            self._path(client, path, "point")
        if server is None or not clients or self.errors:
            return None
        self._refuse_doubles([(("server",), server), *clients])
        made = self._made(server, clients, folder, share, mount)
        return None if self.errors else made

    def _path(self, section: dict[str, Any], path: KeyPath, key: str) -> str:
        if not section.get(key):
            example = {"folder": "folder: /srv/weights below 'share'"}.get(
                key, "point: /mnt/weights below 'mount', for all clients"
            )
            self.refuse(path[:1] if key == "folder" else path, f"no {key!r} is named", example)
            return ""
        try:
            return checked_path(section[key], key)
        except RequestRefused as error:
            at = (*path[:1], key) if key == "folder" else (*path, key)
            self.refuse(at, f"{error.where} {error.message}", error.hint)
            return ""

    def _each_client(self, value: Any) -> Iterator[tuple[KeyPath, Any]]:
        if value is None and self.errors:
            return  # its key was misspelt, most likely, and that is noted
        if not isinstance(value, (list, tuple)) or not value:
            self.refuse(("clients",), "no list of clients", "clients: [trainer1, trainer2]")
            return
        for index, one in enumerate(value):
            yield ("clients", index), one

    def _host(
        self, value: Any, path: KeyPath, known: dict[str, Kind], ssh: dict[str, Any]
    ) -> dict[str, Any] | None:
        if isinstance(value, (list, tuple)) and path == ("server",):
            self.refuse(path, "is a list; a share has one server", "name one host")
            return None
        if value is None and path == ("server",) and self.errors:
            return None  # as above
        if value is None:
            self.refuse(path, f"no {path[0]} is named", f"{path[0]}: NAME, or host: NAME below it")
            return None
        own = self.section({"host": value} if isinstance(value, str) else value, path, known)
        host, at = own.get("host", ""), path if isinstance(value, str) else (*path, "host")
        if not host:
            self.refuse(path, "no host is named", "host: NAME or address")
            return None
        if not is_host(host):
            hint = "write user: and port: below it" if set("@:") & set(host) else ""
            self.refuse(at, f"{host!r} is neither a host name nor an address", hint)
            return None
        host_values = {**ssh, **own}
        if "jump" in host_values:
            host_values["jump"] = self._jump(
                host_values["jump"], (*path, "jump") if "jump" in own else ("ssh",)
            )
        address = host_values.setdefault("address", host)
        if not is_host(address):
            self.refuse((*path, "address"), f"{address!r} is neither a host name nor an address")
            return None
        return host_values

    def _jump(self, value: Any, path: KeyPath) -> Login | None:
        short = _LOGIN.fullmatch(value) if isinstance(value, str) else None
        if short is not None:
            value = {key: text for key, text in short.groupdict().items() if text is not None}
            value["host"] = value["host"].strip("[]")
            value |= {"port": int(value["port"])} if "port" in value else {}
        own = self.section(value, path, _JUMP)
        if not is_host(own.get("host", "")):
            self.refuse(path, "names no jump host", "jump: me@gate:22")
            return None
        return _login(own)

    def _refuse_doubles(self, hosts: list[tuple[KeyPath, dict[str, Any]]]) -> None:
        seen: dict[tuple[str, int], KeyPath] = {}
        for path, one in hosts:
            # A machine's ports may be several machines behind one address; what the others
            # call it can be one only.
            for key in (
                (one["host"].lower().rstrip("."), one.get("port", 0)),
                (one["address"].lower().rstrip("."), -1),
            ):
                first = seen.setdefault(key, path)
                if first is path:
                    continue
                if first == ("server",):
                    message = f"{one['host']!r} is the server itself"
                    hint = "what runs there uses the folder; it needs no mount"
                else:
                    message = f"{one['host']!r} is listed twice, first at {self.where(first)}"
                    hint = "remove one of the two"
                self.refuse(path, message, hint)
                break

    def _made(
        self,
        server: dict[str, Any],
        clients: list[tuple[KeyPath, dict[str, Any]]],
        folder: str,
        share: dict[str, Any],
        mount: dict[str, Any],
    ) -> Inventory:
        asked = _request_values(ServerRequest, share)
        for path, client in clients:
            try:
                exports.client(client["address"])
            except RequestRefused as error:
                self.refuse(path, f"{error.where} {error.message}", error.hint)
        addresses = tuple(client["address"] for _, client in clients)
        export = ServerRequest(path=folder, clients=addresses, **asked)
        mount = {"sec": export.sec.partition(":")[0], **mount}
        source = _source(server["address"], folder)
        try:
            checked_source(source)
            exports.flavours(export.sec)
        except RequestRefused as error:
            self.refuse(("share",), f"{error.where} {error.message}", error.hint)
        members = [
            _member(
                client,
                ClientRequest(
                    source=source,
                    **{**_request_values(ClientRequest, mount), "point": client["point"]},
                ),
                self.where(path),
            )
            for path, client in clients
        ]
        return Inventory(_member(server, export, self.where(("server",))), tuple(members))


def _source(address: str, folder: str) -> str:
    bracketed = f"[{address}]" if is_address(address) and ":" in address else address
    return f"{bracketed}:{folder}"


def _request_values(form: type[Any], section: dict[str, Any]) -> dict[str, Any]:
    names = {camel(field.name): field.name for field in fields(form)}
    return {names[key]: value for key, value in section.items() if key in names}


def _member(host: dict[str, Any], request: Any, where: str) -> Member:
    shown = f"{host['host']}:{host['port']}" if host.get("port", 22) != 22 else host["host"]
    login = _login(host)
    # The one that runs this is there for sure.
    python = host.get("python", sys.executable if login.local else "python3")
    return Member(shown, login, request, python, where)


def _login(host: dict[str, Any]) -> Login:
    return Login(
        host=host["host"],
        port=host.get("port", 0),
        user=host.get("user", ""),
        key_file=host.get("keyFile", ""),
        passphrase=host.get("passphrase", ""),
        password=host.get("password", ""),
        known_hosts=host.get("knownHosts", ""),
        jump=host.get("jump"),
        local=host.get("local", False),
    )
