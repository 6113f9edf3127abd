"""What a server is set up with, what it refuses, and what it warns of."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfs_setup.errors import MachineRefuses, RequestRefused
from nfs_setup.host import Ran
from nfs_setup.report import Report
from nfs_setup.request import ServerRequest, UndoRequest
from nfs_setup.verbs import perform
from tests.unit.nfs_setup.pretended import Pretended


def asked(path: str = "/srv/w", *clients: str, **more: object) -> ServerRequest:
    values = {
        "path": path,
        "clients": clients or ("10.0.0.0/24",),
        "owner": "trainer",
        "shares_its_file_system": True,
        **more,
    }
    return ServerRequest(**values)  # type: ignore[arg-type]


def notes(report: Report, level: str = "warning") -> list[str]:
    return [note.text for note in report.notes if note.level == level]


def test_the_folder_is_its_owners_and_its_groups(host: Pretended) -> None:
    perform(host, asked(group="ml"))
    found = host.stat("/srv/w")
    assert found is not None
    assert found.mode == 0o2770
    text = perform(host, asked("/srv/x", group="ml", dry_run=True)).steps[0].detail
    assert "owner trainer (1234), group ml (1300), mode 2770" in text


def test_a_folder_that_is_there_keeps_its_owner_and_mode(host: Pretended) -> None:
    (host.folder / "srv/w").mkdir(mode=0o755)
    report = perform(host, asked(owner=""))
    assert report.steps[0].state == "already"
    assert (host.folder / "srv/w").stat().st_mode & 0o7777 == 0o755
    perform(host, asked(owner="", mode="2775"))
    assert (host.folder / "srv/w").stat().st_mode & 0o7777 == 0o2775
    perform(host, UndoRequest())
    assert (host.folder / "srv/w").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    "request_, word",
    [
        (asked(owner=""), "nobody is named to own it"),
        (asked(owner="nobody-knows-me"), "knows no user"),
        (asked(owner="a b"), "no name of a user"),
        (asked(group="-x"), "no name of a group"),
        (asked(mode="9"), "no mode"),
        (asked(mode="77777"), "no mode"),
        (asked("/"), "root of the whole system"),
        (asked("/etc/fstab"), "exists and is no folder"),
        (asked("/etc/fstab/w"), "exists and is no folder"),
        (asked("/link/w"), "is a symbolic link"),
        (asked("/srv/w", "*"), "everybody"),
        (asked("/srv/w", "nowhere"), "has no address here"),
        (asked(sec="none"), "no security flavour"),
        (ServerRequest("/srv/w", ()), "no client is named"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_changes(
    host: Pretended, request_: ServerRequest, word: str
) -> None:
    (host.folder / "link").symlink_to("/srv")
    with pytest.raises((RequestRefused, MachineRefuses), match=word):
        perform(host, request_)
    assert host.ran == []
    assert not (host.folder / "var/lib/bequeath").exists()


def test_a_folder_that_somebody_exports_already_is_theirs(host: Pretended) -> None:
    (host.folder / "etc/exports").write_text("# old\n/srv/w *(rw,no_root_squash)\n")
    with pytest.raises(MachineRefuses, match="exported already") as caught:
        perform(host, asked())
    assert "/etc/exports:2" in caught.value.hint


@pytest.mark.parametrize("text", ["ID=gentoo\nPRETTY_NAME=Gentoo\n", "", 'ID="\nX'])
def test_an_unknown_system_is_told_apart(host: Pretended, text: str) -> None:
    (host.folder / "etc/os-release").write_text(text)
    with pytest.raises(MachineRefuses, match="neither of the Debian nor of the Red Hat family"):
        perform(host, asked())


@pytest.mark.parametrize(
    "ids", ["ID=ubuntu", "ID=linuxmint\nID_LIKE='ubuntu debian'", "ID=raspbian\nID_LIKE=debian"]
)
def test_relatives_of_debian_are_debian(host: Pretended, ids: str) -> None:
    (host.folder / "etc/os-release").write_text(ids)
    perform(host, asked())
    assert "nfs-kernel-server" in host.installed


def test_a_package_manager_at_work_is_named(host: Pretended) -> None:
    host.fail["apt-get"] = Ran(100, "", "E: Could not get lock /var/lib/dpkg/lock-frontend")
    with pytest.raises(MachineRefuses, match="at work for somebody else"):
        perform(host, asked())
    assert not (host.folder / "srv/w").exists()


def test_old_lists_of_packages_are_fetched_once(
    host: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Pretended.answer

    def stale(self: Pretended, words: list[str]) -> Ran:
        if "install" in words and not any("update" in ran for ran in self.ran):
            return Ran(100, "", "E: Unable to locate package nfs-kernel-server")
        return answer(self, words)

    monkeypatch.setattr(Pretended, "answer", stale)
    perform(host, asked())
    assert "nfs-kernel-server" in host.installed


def test_a_service_that_says_yes_and_does_not_start_is_a_failure(
    host: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = Pretended.change

    def refuse(self: Pretended, words: list[str]) -> Ran:
        if words == ["service", "nfs-kernel-server", "start"]:
            return Ran(0, "Not starting NFS kernel daemon: no support in current kernel.\n", "")
        return change(self, words)

    monkeypatch.setattr(Pretended, "change", refuse)
    with pytest.raises(MachineRefuses, match=r"did not start.*no support in current kernel"):
        perform(host, asked())


def test_a_port_that_is_taken_is_named(host: Pretended) -> None:
    said = "rpc.nfsd: unable to set any sockets for nfsd"
    host.fail["service nfs-kernel-server start"] = Ran(1, "", said)
    with pytest.raises(MachineRefuses, match="unable to set any sockets") as caught:
        perform(host, asked())
    assert "port 2049" in caught.value.hint


def test_an_nfs_that_reads_no_file_of_ours_is_refused_or_left_as_it_is(host: Pretended) -> None:
    host.fail["nfsconf"] = Ran(127, "", "no such program")
    with pytest.raises(MachineRefuses) as caught:
        perform(host, asked())
    assert "--nfs3" in caught.value.hint
    perform(host, asked(nfs3=True))
    assert not (host.folder / "etc/nfs.conf.d").exists()


@pytest.mark.parametrize("kind, word", [("tmpfs", "in memory"), ("nfs4", "another NFS")])
def test_a_folder_on_memory_or_on_nfs_is_warned_of_and_has_a_name(
    host: Pretended, monkeypatch: pytest.MonkeyPatch, kind: str, word: str
) -> None:
    info = Path(host.folder / "proc/self/mountinfo")
    show = Pretended.shown

    def with_mount(self: Pretended) -> None:
        show(self)
        info.write_text(info.read_text() + f"31 20 0:50 / /srv rw - {kind} there:/x rw\n")

    monkeypatch.setattr(Pretended, "shown", with_mount)
    host.shown()
    report = perform(host, asked())
    assert any(word in text for text in notes(report))
    (file,) = (host.folder / "etc/exports.d").iterdir()
    assert ",fsid=" in file.read_text()


def test_what_is_loose_is_said(host: Pretended) -> None:
    report = perform(
        host,
        asked("/srv/w", "*", root_squash=False, sync=False, allow_everybody=True, dry_run=True),
    )
    said = " ".join(notes(report))
    assert "everybody" in said
    assert "no_root_squash" in said
    assert "async" in said


def test_a_server_of_others_keeps_nfs3(redhat: Pretended) -> None:
    (redhat.folder / "etc/exports.d").mkdir()
    (redhat.folder / "etc/exports.d/theirs.exports").write_text("/data *(ro)\n")
    redhat.running.add("nfs-server.service")
    redhat.shown()
    (redhat.folder / "proc/fs/nfsd/versions").write_text("+3 +4 +4.1 +4.2\n")
    report = perform(redhat, asked())
    assert any("serves /data already" in text for text in notes(report))
    assert not any("restart" in ran for ran in redhat.ran)
    assert not (redhat.folder / "etc/nfs.conf.d").exists()


def test_the_rule_of_the_firewall_is_printed(host: Pretended) -> None:
    report = perform(host, asked("/srv/w", "10.0.0.0/24", "fd00::/64", "trainer1", dry_run=True))
    (text,) = notes(report, "do")
    assert "ip saddr 10.0.0.0/24 tcp dport 2049 accept" in text
    assert "ip6 saddr fd00::/64 tcp dport 2049 accept" in text
    assert "CLIENT-ADDRESS" in text


def test_a_folder_among_others_is_exported_only_where_somebody_says_so(host: Pretended) -> None:
    with pytest.raises(MachineRefuses, match="is no file system of its own") as caught:
        perform(host, asked(shares_its_file_system=False))
    assert "--shares-its-file-system" in caught.value.hint
    assert host.ran == []
    report = perform(host, asked())
    assert any("may reach all of it" in text for text in notes(report))


@pytest.mark.parametrize("top, whole", [("/", True), ("/data/w", False)])
def test_a_mount_is_a_file_system_of_its_own_unless_it_is_a_part_of_one(
    host: Pretended, monkeypatch: pytest.MonkeyPatch, top: str, whole: bool
) -> None:
    info = Path(host.folder / "proc/self/mountinfo")
    show = Pretended.shown

    def with_mount(self: Pretended) -> None:
        show(self)
        info.write_text(info.read_text() + f"31 20 8:2 {top} /srv/w rw - ext4 /dev/sdb1 rw\n")

    monkeypatch.setattr(Pretended, "shown", with_mount)
    host.shown()
    (host.folder / "srv/w").mkdir()
    if whole:
        report = perform(host, asked(shares_its_file_system=False))
        assert not any("may reach all of it" in text for text in notes(report))
    else:
        with pytest.raises(MachineRefuses, match="holds more than /srv/w"):
            perform(host, asked(shares_its_file_system=False))
