"""What is planned for systems that no guest here is: compared as text, *not run*.

``planned/*.txt`` are the whole plans, step by step, as ``--dry-run`` prints them; look at a
change of them as at a change of code.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nfs_setup import firewall
from nfs_setup.exports import client
from nfs_setup.host import Ran
from nfs_setup.report import Report
from nfs_setup.request import ClientRequest, Request, ServerRequest, UndoRequest
from nfs_setup.units import automount_unit, mount_unit, unit_name
from nfs_setup.verbs import perform
from tests.unit.nfs_setup.pretended import OK, Pretended

PLANNED = Path(__file__).parent / "planned"

REQUESTS: dict[str, Request] = {
    "redhat_server": ServerRequest(
        "/srv/w",
        ("10.0.0.0/24", "trainer1"),
        owner="trainer",
        shares_its_file_system=True,
        open_firewall=True,
        dry_run=True,
    ),
    "redhat_client": ClientRequest("server:/srv/w", "/mnt/our w", sec="krb5p", dry_run=True),
}


def told(report: Report) -> str:
    steps = "".join(f"{line.state}: {line.text}\n{line.detail}" for line in report.steps)
    return steps + "".join(f"{note.level}: {note.text}\n" for note in report.notes)


@pytest.mark.parametrize("name", REQUESTS)
def test_plans_for_red_hat_with_systemd_not_run(redhat: Pretended, name: str) -> None:
    redhat.fail = {
        "firewall-cmd --state": OK,
        "firewall-cmd --permanent --query": Ran(1, "no\n", ""),
    }
    assert told(perform(redhat, REQUESTS[name])) == (PLANNED / f"{name}.txt").read_text()


def test_ufw_not_run(host: Pretended) -> None:
    host.fail = {"ufw status": Ran(0, "Status: active\n", ""), "ufw show": OK}
    request = ServerRequest(
        "/srv/w",
        ("10.0.0.0/24",),
        owner="1000",
        shares_its_file_system=True,
        open_firewall=True,
    )
    perform(host, request)
    rule = "allow proto tcp from 10.0.0.0/24 to any port 2049"
    assert f"ufw {rule}" in host.ran
    perform(host, UndoRequest())
    assert f"ufw delete {rule}" in host.ran


def test_rules_for_each_firewall() -> None:
    clients = [client("10.0.0.7"), client("fd00::/64")]
    assert firewall.rules("firewalld", clients) == [
        'firewall-cmd --permanent --add-rich-rule=\'rule family="ipv4" source '
        'address="10.0.0.7/32" port port="2049" protocol="tcp" accept\'',
        'firewall-cmd --permanent --add-rich-rule=\'rule family="ipv6" source '
        'address="fd00::/64" port port="2049" protocol="tcp" accept\'',
        "firewall-cmd --reload",
    ]
    assert firewall.rules("", clients)[1].endswith("ip6 saddr fd00::/64 tcp dport 2049 accept")


@pytest.mark.parametrize(
    "point, name",
    [
        ("/mnt/w", "mnt-w"),
        ("/mnt/our w", r"mnt-our\x20w"),
        ("/mnt/a-b", r"mnt-a\x2db"),
        ("/.hidden/x", r"\x2ehidden-x"),
        ("/mnt/ü", r"mnt-\xc3\xbc"),
        ("/mnt/50%", r"mnt-50\x25"),
    ],
)
def test_units_are_called_as_systemd_demands(point: str, name: str) -> None:
    assert unit_name(point) == name


def test_a_percent_sign_is_no_specifier() -> None:
    assert "Where=/mnt/50%%\n" in mount_unit("server:/x", "/mnt/50%", ("hard",))
    assert "Where=/mnt/50%%\n" in automount_unit("server:/x", "/mnt/50%")
