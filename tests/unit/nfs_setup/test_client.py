"""How a share is mounted, with which options, and what is in the way."""

from __future__ import annotations

import pytest

from nfs_setup.client import checked_source, explained, mount_options
from nfs_setup.errors import MachineRefuses, RequestRefused
from nfs_setup.host import Ran
from nfs_setup.request import ClientRequest, UndoRequest
from nfs_setup.verbs import perform
from tests.unit.nfs_setup.pretended import Pretended


def asked(**more: object) -> ClientRequest:
    return ClientRequest(**{"source": "server:/srv/w", "point": "/mnt/w", **more})  # type: ignore[arg-type]


def test_the_options_and_a_reason_for_each() -> None:
    options = mount_options(asked())
    assert ",".join(options) == ("vers=4.2,proto=tcp,hard,sec=sys,nosuid,nodev,noatime,nconnect=4")
    everything = asked(read_only=True, exec_allowed=False, actimeo=30, sec="krb5p")
    assert {"ro", "noexec", "actimeo=30", "sec=krb5p"} <= set(mount_options(everything))
    assert all(explained((*mount_options(everything), "_netdev", "nofail")).values())
    assert "nconnect=1" not in mount_options(asked(nconnect=1))


@pytest.mark.parametrize(
    "more",
    [
        {"version": "3"},
        {"version": "4.2,soft"},
        {"sec": "sys:krb5"},
        {"sec": "sys,soft"},
        {"nconnect": 0},
        {"nconnect": 17},
        {"actimeo": 75},
        {"actimeo": -1},
        {"last": "cron"},
        {"source": "server"},
        {"source": "server:"},
        {"source": "server:srv"},
        {"source": ":/srv"},
        {"source": "ser ver:/srv"},
        {"source": "server\nx:/srv"},
        {"source": "-o:/srv"},
        {"source": "fd00::1:/srv"},
        {"source": "server:/srv/\nx"},
        {"source": "server:/srv/../x"},
        {"point": "mnt"},
        {"point": "/"},
        {"point": "/mnt/\nx"},
    ],
)
def test_what_is_wrong_is_refused(host: Pretended, more: dict[str, object]) -> None:
    with pytest.raises(RequestRefused):
        perform(host, asked(**more))
    assert host.ran == []


@pytest.mark.parametrize("source", ["10.0.0.1:/srv/w", "[fd00::1]:/srv/w", "a.example.org:/w x"])
def test_servers_are_names_and_addresses(source: str) -> None:
    assert checked_source(source) == source


def test_a_blank_stays_one_word_in_fstab(host: Pretended) -> None:
    perform(host, asked(source="server:/srv/our w", point="/mnt/my w#"))
    lines = (host.folder / "etc/fstab").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("server:")]
    words = line.split()
    assert words[:3] == [r"server:/srv/our\040w", r"/mnt/my\040w\043", "nfs4"]
    assert words[4:] == ["0", "0"]


def test_a_folder_with_files_is_not_hidden(host: Pretended) -> None:
    (host.folder / "mnt/w").mkdir()
    (host.folder / "mnt/w/file").write_text("")
    with pytest.raises(MachineRefuses, match="holds 1 files that a mount would hide"):
        perform(host, asked())


def test_a_mount_point_that_is_a_file_or_a_link_is_refused(host: Pretended) -> None:
    (host.folder / "mnt/file").write_text("")
    (host.folder / "mnt/link").symlink_to("/mnt")
    with pytest.raises(MachineRefuses, match="no folder"):
        perform(host, asked(point="/mnt/file"))
    with pytest.raises(MachineRefuses, match="symbolic link"):
        perform(host, asked(point="/mnt/link"))


def test_a_mount_point_in_use_is_refused(host: Pretended) -> None:
    host.mounted["/mnt/w"] = ("other:/x", "rw")
    host.shown()
    with pytest.raises(MachineRefuses, match=r"other:/x \(nfs4\) is mounted there already"):
        perform(host, asked())


def test_the_same_share_with_other_options_is_refused(host: Pretended) -> None:
    host.mounted["/mnt/w"] = ("server:/srv/w", "vers=4.2,proto=tcp,soft,sec=sys,nosuid,nodev")
    host.shown()
    with pytest.raises(MachineRefuses, match="already, without hard, noatime"):
        perform(host, asked())


def test_any_version_4_is_what_was_agreed_on(host: Pretended) -> None:
    perform(host, asked(version="4", last="no"))
    source, options = host.mounted["/mnt/w"]
    host.mounted["/mnt/w"] = (source, options.replace("vers=4,", "vers=4.2,"))
    host.shown()
    assert not perform(host, asked(version="4", last="no")).changed


@pytest.mark.parametrize(
    "said, hint",
    [
        ("mount.nfs4: an incorrect mount option was specified", "lacks one of the options"),
        ("mount.nfs4: Protocol not supported", "--nfs-version 4.1"),
        ("mount.nfs4: access denied by server while mounting server:/srv/w", "does not export"),
        ("mount.nfs4: mounting server:/srv/w failed, reason: No such file", "no such folder"),
        ("mount.nfs4: Failed to resolve server server: Name or service not known", "/etc/hosts"),
        ("mount.nfs4: Connection refused", "nothing answers"),
        ("mount took longer than 45 s", "does a firewall stand between"),
    ],
)
def test_why_a_mount_failed_and_what_to_do(host: Pretended, said: str, hint: str) -> None:
    host.fail["mount"] = Ran(32, "", said)
    with pytest.raises(MachineRefuses) as caught:
        perform(host, asked())
    assert said.rpartition(": ")[2] in caught.value.message
    assert hint in caught.value.hint
    assert not (host.folder / "mnt/w").exists()


def test_a_server_without_an_address_is_refused_before_anything_changes(host: Pretended) -> None:
    with pytest.raises(MachineRefuses, match="has no address here"):
        perform(host, asked(source="nowhere:/srv/w"))
    assert host.ran == []
    perform(host, asked(source="nowhere:/srv/w", dry_run=True))  # a plan may be made elsewhere
    perform(host, asked(source="10.0.0.1:/srv/w"))


def test_what_kerberos_lacks_is_said(host: Pretended) -> None:
    host.fail["mount"] = Ran(32, "", "mount.nfs4: an incorrect mount option was specified")
    with pytest.raises(MachineRefuses) as caught:
        perform(host, asked(sec="krb5p"))
    assert "rpc.gssd" in caught.value.hint
    assert "nconnect" not in caught.value.hint


def test_a_mount_that_says_yes_and_does_nothing_is_a_failure(host: Pretended) -> None:
    host.fail["mount"] = Ran(0, "", "")
    with pytest.raises(MachineRefuses, match="nothing is mounted"):
        perform(host, asked())


def test_fstab_with_half_a_mark_is_left_alone(host: Pretended) -> None:
    fstab = host.folder / "etc/fstab"
    mark = "# bequeath nfs: begin /mnt/w (do not edit up to its end)\n"
    fstab.write_text(f"{mark}server:/x /mnt/w nfs4 hard 0 0\n")
    with pytest.raises(MachineRefuses, match="opening mark"):
        perform(host, asked())
    assert "bequeath nfs: end" not in fstab.read_text()


def test_fstab_that_is_a_link_is_left_alone(host: Pretended) -> None:
    fstab = host.folder / "etc/fstab"
    fstab.rename(host.folder / "etc/real")
    fstab.symlink_to("real")
    with pytest.raises(MachineRefuses, match="is a link"):
        perform(host, asked())
    assert fstab.is_symlink()


def test_systemd_is_not_asked_where_it_does_not_run(host: Pretended) -> None:
    with pytest.raises(MachineRefuses, match="systemd does not run here"):
        perform(host, asked(last="automount"))


def test_rpcbind_that_came_along_is_off_and_one_that_was_there_is_left(host: Pretended) -> None:
    perform(host, asked(last="no"))
    assert "rpcbind" in host.installed
    assert "rpcbind" not in host.running
    assert not (host.folder / "etc/rc2.d/S01rpcbind").is_symlink()
    perform(host, UndoRequest())
    assert "rpcbind" not in host.installed
    host.bring_rpcbind()
    perform(host, asked(last="no"))
    assert "rpcbind" in host.running
