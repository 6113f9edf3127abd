"""Inventories: what is understood, and what is refused where."""

from __future__ import annotations

from typing import Any

import pytest

from nfs_setup.cluster.inventory import inventory_of
from nfs_setup.cluster.members import Login
from nfs_setup.cluster.reading import InventoryRefused, KeyPath
from nfs_setup.request import ClientRequest, ServerRequest

SMALL = {
    "share": {"folder": "/srv/w", "owner": "trainer"},
    "mount": {"point": "/mnt/w"},
    "server": "nas",
    "clients": ["one", "two"],
}


def places(path: KeyPath, key: bool) -> str:
    return ".".join(map(str, path)) + ("!" if key else "")


def errors(values: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(InventoryRefused) as caught:
        inventory_of(values, places)
    return [(error.where, error.message, error.hint) for error in caught.value.errors]


def test_a_small_one() -> None:
    found = inventory_of(SMALL, places)
    assert found.server.request == ServerRequest("/srv/w", ("one", "two"), owner="trainer")
    assert [c.request for c in found.clients] == [ClientRequest("nas:/srv/w", "/mnt/w")] * 2
    assert [(m.name, m.role) for m in found.members] == [
        ("nas", "server"),
        ("one", "client"),
        ("two", "client"),
    ]
    assert found.clients[1].login == Login("two")
    assert found.clients[1].where == "clients.1"


def test_everything_that_can_be_said() -> None:
    found = inventory_of(
        {
            "share": {
                "folder": "/srv/w",
                "owner": 1000,
                "mode": "2775",
                "sec": "krb5p:krb5i",
                "read_only": "yes",
                "openFirewall": True,
            },
            "mount": {"point": "/mnt/w", "version": 4.1, "nconnect": 8, "last": "fstab"},
            "ssh": {"user": "admin", "keyFile": "id", "jump": {"host": "gate", "port": 2222}},
            "server": {"host": "10.0.0.1", "address": "fd00::1", "local": True},
            "clients": [
                {
                    "host": "one",
                    "port": 23,
                    "user": "root",
                    "password": "env:PW",
                    "jump": "me@hop:24",
                },
                {"host": "two", "address": "10.0.0.3", "point": "/data/w", "python": "/opt/py"},
            ],
        },
        places,
    )
    one, two = found.clients
    assert found.server.request == ServerRequest(
        "/srv/w",
        ("one", "10.0.0.3"),
        owner="1000",
        mode="2775",
        sec="krb5p:krb5i",
        read_only=True,
        open_firewall=True,
    )
    wanted = ClientRequest(
        "[fd00::1]:/srv/w", "/mnt/w", last="fstab", version="4.1", sec="krb5p", nconnect=8
    )
    assert one.request == wanted
    assert isinstance(two.request, ClientRequest)
    assert two.request.point == "/data/w"
    assert one.name == "one:23"
    assert one.login == Login(
        "one", 23, "root", key_file="id", password="env:PW", jump=Login("hop", 24, "me")
    )
    assert two.login == Login("two", 0, "admin", key_file="id", jump=Login("gate", 2222))
    assert two.python == "/opt/py"
    assert found.server.login.local
    assert found.server.python.startswith("/"), "this machine's own interpreter"


@pytest.mark.parametrize(
    "change, where, message, hint",
    [
        ({"clinets": []}, "clinets!", "unknown key 'clinets'; did you mean 'clients'?", ""),
        (
            {"share": {"folder": "/w", "ownr": "a"}},
            "share.ownr!",
            "unknown key 'ownr' in 'share'; did you mean 'owner'?",
            "",
        ),
        ({"servers": ["a"]}, "servers!", "unknown key 'servers'; did you mean 'server'?", ""),
        ({"server": ["a", "b"]}, "server", "is a list; a share has one server", "name one host"),
        ({"server": None}, "server", "no server is named", "server: NAME, or host: NAME below it"),
        ({"clients": []}, "clients", "no list of clients", "clients: [trainer1, trainer2]"),
        ({"clients": "one"}, "clients", "no list of clients", "clients: [trainer1, trainer2]"),
        (
            {"clients": ["one", "two", "ONE"]},
            "clients.2",
            "'ONE' is listed twice, first at clients.0",
            "remove one of the two",
        ),
        (
            {"clients": ["one", {"host": "alias", "address": "one"}]},
            "clients.1",
            "'alias' is listed twice, first at clients.0",
            "remove one of the two",
        ),
        (
            {"clients": ["one", "nas"]},
            "clients.1",
            "'nas' is the server itself",
            "what runs there uses the folder; it needs no mount",
        ),
        (
            {"clients": ["root@one"]},
            "clients.0",
            "'root@one' is neither a host name nor an address",
            "write user: and port: below it",
        ),
        (
            {"clients": ["10.0.0.0/24"]},
            "clients.0",
            "'10.0.0.0/24' is neither a host name nor an address",
            "",
        ),
        ({"clients": [{"port": 22}]}, "clients.0", "no host is named", "host: NAME or address"),
        (
            {"clients": [{"host": "a", "port": 0}]},
            "clients.0.port",
            "'port' is no port: 1 to 65535",
            "",
        ),
        (
            {"ssh": {"password": "hunter2"}},
            "ssh.password",
            "'password' is no reference; write env:NAME or file:PATH, never the password itself",
            "",
        ),
        (
            {"share": {"folder": "srv/w"}},
            "share.folder",
            "folder 'srv/w' is not an absolute path",
            "begin it with /",
        ),
        ({"share": {}}, "share", "no 'folder' is named", "folder: /srv/weights below 'share'"),
        (
            {"share": {"folder": "/w", "mode": 2770}},
            "share.mode",
            "'mode' is no text; write it in quotes, as '2770'",
            "",
        ),
        (
            {"share": {"folder": "/w", "sec": "krb6"}},
            "share",
            "sec 'krb6' is no security flavour",
            "it is one of sys, krb5, krb5i, krb5p, several separated by ':'",
        ),
        (
            {"mount": {"point": "/mnt/a\nb"}},
            "mount.point",
            "'point' holds a control character",
            "",
        ),
        (
            {"mount": {"point": "/m", "nconnect": "four"}},
            "mount.nconnect",
            "'nconnect' is no whole number",
            "",
        ),
        ({"jump": "x"}, "jump!", "unknown key 'jump'", "keys here are share, mount, ssh"),
        ({"ssh": {"jump": {"user": "me"}}}, "ssh", "names no jump host", "jump: me@gate"),
        ({"mount": []}, "mount", "is no section in 'mount'", "its keys are point, last"),
    ],
)
def test_what_is_refused(change: dict[str, Any], where: str, message: str, hint: str) -> None:
    found = errors({**SMALL, **change})
    assert found[0][0] == where, found
    assert found[0][1] == message, found
    assert found[0][2].startswith(hint), found


def test_a_missing_point_is_said_once_a_client() -> None:
    values = {**SMALL, "mount": {}, "clients": ["one", {"host": "two", "point": "/mnt/two"}]}
    assert errors(values) == [
        ("clients.0", "no 'point' is named", "point: /mnt/weights below 'mount', for all clients")
    ]


@pytest.mark.parametrize("values", [None, [], "nas", 3])
def test_what_is_no_inventory(values: Any) -> None:
    assert errors(values)[0][1] == "is no section"


def test_all_errors_at_once() -> None:
    values = {"shares": {}, "mount": {"pint": "/m"}, "server": "a b", "clients": [{"hots": "x"}]}
    found = [message for _, message, _ in errors(values)]
    assert found == [
        "unknown key 'shares'; did you mean 'share'?",
        "unknown key 'pint' in 'mount'; did you mean 'point'?",
        "no 'folder' is named",
        "'a b' is neither a host name nor an address",
        "unknown key 'hots'; did you mean 'host'?",
        "no host is named",
    ]
