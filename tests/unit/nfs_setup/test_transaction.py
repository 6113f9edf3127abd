"""All steps or none; twice is once; and back is where it began, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from nfs_setup.errors import MachineRefuses, RequestRefused, RollbackFailed
from nfs_setup.host import Ran
from nfs_setup.ledger import FILE, FOLDER
from nfs_setup.report import Report
from nfs_setup.request import ClientRequest, Request, ServerRequest, UndoRequest
from nfs_setup.verbs import perform
from tests.unit.nfs_setup.pretended import PowerCut, Pretended, tree

SERVER = ServerRequest(
    "/srv/our weights",
    ("10.0.0.0/24", "trainer1"),
    owner="trainer",
    shares_its_file_system=True,
)
CLIENT = ClientRequest("server:/srv/w", "/mnt/w")
NO = Ran(1, "", "no")

#: A command of each step that runs one.
SERVER_COMMANDS = (
    "apt-get -q -y",
    "nfsconf",
    "update-rc.d nfs-kernel-server enable",
    "service nfs-kernel-server start",
    "exportfs -s",
)
REDHAT_COMMANDS = (
    "dnf",
    "systemctl mask",
    "systemctl enable nfs-server.service",
    "systemctl start nfs-server.service",
)


def states(report: Report) -> set[str]:
    return {line.state for line in report.steps}


def facts(host: Pretended) -> tuple[object, ...]:
    links = tree(host.folder)
    return (links, host.installed, host.running, host.enabled, host.masked, host.mounted)


def copied(host: Pretended) -> tuple[object, ...]:
    return (tree(host.folder), set(host.installed), set(host.running), set(host.enabled),
            host.masked, dict(host.mounted))  # fmt: skip


@pytest.mark.parametrize("request_", [SERVER, CLIENT], ids=["server", "client"])
def test_there_again_and_back(host: Pretended, request_: Request) -> None:
    before = copied(host)
    done = perform(host, request_)
    assert done.changed
    assert facts(host) != before
    since = copied(host)
    host.ran.clear()
    again = perform(host, request_)
    assert states(again) == {"already"}
    assert not again.changed
    assert (host.ran, copied(host)) == ([], since)
    undone = perform(host, UndoRequest())
    assert states(undone) == {"undone"}
    assert copied(host) == before
    assert not perform(host, UndoRequest()).changed


@pytest.mark.parametrize("request_", [SERVER, CLIENT], ids=["server", "client"])
def test_there_again_and_back_with_systemd(redhat: Pretended, request_: Request) -> None:
    before = copied(redhat)
    assert perform(redhat, request_).changed
    assert states(perform(redhat, request_)) == {"already"}
    perform(redhat, UndoRequest())
    assert copied(redhat) == before


@pytest.mark.parametrize("request_", [SERVER, CLIENT], ids=["server", "client"])
def test_a_dry_run_changes_nothing_and_needs_no_root(host: Pretended, request_: Request) -> None:
    before, host.root = copied(host), False
    values = {**vars(request_), "dry_run": True}
    report = perform(host, type(request_)(**values))
    assert "planned" in states(report)
    assert (host.ran, copied(host)) == ([], before)
    with pytest.raises(MachineRefuses, match="needs root"):
        perform(host, request_)
    assert copied(host) == before


@pytest.mark.parametrize("command", SERVER_COMMANDS)
def test_a_step_that_fails_takes_back_all_before_it(host: Pretended, command: str) -> None:
    before = copied(host)
    host.fail[command] = NO
    with pytest.raises(MachineRefuses):
        perform(host, SERVER)
    host.fail.clear()
    assert copied(host) == before
    assert perform(host, SERVER).changed


@pytest.mark.parametrize("command", REDHAT_COMMANDS)
def test_a_step_of_systemd_that_fails_takes_back_all(redhat: Pretended, command: str) -> None:
    before = copied(redhat)
    redhat.fail[command] = NO
    with pytest.raises(MachineRefuses):
        perform(redhat, SERVER)
    redhat.fail.clear()
    assert copied(redhat) == before


@pytest.mark.parametrize("command", ["apt-get -q -y", "mount"])
def test_a_client_that_fails_takes_back_all(host: Pretended, command: str) -> None:
    before = copied(host)
    host.fail[command] = NO
    with pytest.raises(MachineRefuses):
        perform(host, CLIENT)
    host.fail.clear()
    assert copied(host) == before


def test_a_file_that_cannot_be_written_takes_back_all(
    host: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = copied(host)
    write = Pretended.write

    def refuse(self: Pretended, path: str, *rest: object) -> None:
        if path.endswith(".exports"):
            raise OSError(30, "Read-only file system", path)
        write(self, path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Pretended, "write", refuse)
    with pytest.raises(MachineRefuses, match="Read-only file system") as caught:
        perform(host, SERVER)
    assert caught.value.where.endswith(".exports")
    assert copied(host) == before


def test_a_full_disk_below_the_ledger_is_an_error_of_the_machine(
    host: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = copied(host)
    write = Pretended.write

    def refuse(self: Pretended, path: str, *rest: object) -> None:
        if path == FILE:
            raise OSError(28, "No space left on device", path)
        write(self, path, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Pretended, "write", refuse)
        with pytest.raises(MachineRefuses, match="No space left on device"):
            perform(host, SERVER)
    assert copied(host) == before


def test_ctrl_c_takes_back_all(host: Pretended, monkeypatch: pytest.MonkeyPatch) -> None:
    before = copied(host)
    change = Pretended.change

    def interrupt(self: Pretended, words: list[str]) -> Ran:
        if words[-1] == "start":
            raise KeyboardInterrupt
        return change(self, words)

    monkeypatch.setattr(Pretended, "change", interrupt)
    with pytest.raises(KeyboardInterrupt):
        perform(host, SERVER)
    assert copied(host) == before


def test_folders_on_the_way_are_made_and_go_again(host: Pretended) -> None:
    before = copied(host)
    perform(host, ClientRequest("server:/srv/w", "/mnt/a/b/c", last="no"))
    assert (host.folder / "mnt/a/b/c").is_dir()
    perform(host, UndoRequest())
    assert copied(host) == before


@pytest.mark.parametrize("command", [SERVER_COMMANDS[0], *SERVER_COMMANDS[2:4]])
def test_what_a_power_cut_left_is_taken_back_by_the_next_run(
    host: Pretended, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = copied(host)
    host.kill = command
    with monkeypatch.context() as patch:
        patch.setattr("nfs_setup.transaction.roll_back", lambda *_: None)  # it has no power
        with pytest.raises(PowerCut):
            perform(host, SERVER)
    host.kill = ""
    assert copied(host) != before
    undone = perform(host, UndoRequest())
    assert "had died" in undone.notes[0].text
    assert copied(host) == before


def test_what_cannot_be_taken_back_after_a_power_cut_is_named_and_tried_again(
    host: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = copied(host)
    host.kill = SERVER_COMMANDS[2]
    with monkeypatch.context() as patch:
        patch.setattr("nfs_setup.transaction.roll_back", lambda *_: None)
        with pytest.raises(PowerCut):
            perform(host, SERVER)
    host.kill = ""
    run = Pretended.run

    def refuse(self: Pretended, argv: Sequence[str], **rest: object) -> Ran:
        if argv[0] == "dpkg":
            raise OSError(12, "Cannot allocate memory")  # which names no file
        return run(self, argv, **rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Pretended, "run", refuse)
        with pytest.raises(MachineRefuses, match="Cannot allocate memory") as caught:
            perform(host, UndoRequest())
    assert caught.value.where.startswith("packages nfs-kernel-server")
    perform(host, UndoRequest())
    assert copied(host) == before


def test_a_rollback_that_fails_says_so_and_can_be_finished_later(host: Pretended) -> None:
    before = copied(host)
    host.fail = {"service nfs-kernel-server start": NO, "dpkg --purge": Ran(1, "", "is locked by")}
    with pytest.raises(RollbackFailed, match="packages nfs-kernel-server"):
        perform(host, SERVER)
    assert "nfs-kernel-server" in host.installed
    host.fail.clear()
    perform(host, UndoRequest())
    assert copied(host) == before


def test_what_two_shares_count_on_goes_with_the_last(host: Pretended) -> None:
    before = copied(host)
    perform(host, SERVER)
    perform(host, ServerRequest(**{**vars(SERVER), "path": "/srv/b", "clients": ("10.0.0.0/24",)}))
    perform(host, UndoRequest(SERVER.path))
    assert "nfs-kernel-server" in host.running
    assert host.run(["exportfs", "-s"]).out.startswith("/srv/b ")
    perform(host, UndoRequest("/srv/b"))
    assert copied(host) == before


def test_mounts_are_undone_in_any_order(host: Pretended) -> None:
    (host.folder / "etc/fstab").write_bytes(b"# ends with a line end\n")
    before = copied(host)
    for name in "abc":
        perform(host, ClientRequest(f"server:/srv/{name}", f"/mnt/{name}"))
    for name in "bac":
        perform(host, UndoRequest(f"/mnt/{name}"))
        assert f"/mnt/{name}" not in host.mounted
    assert copied(host) == before


def test_lines_that_others_added_to_fstab_since_stay(host: Pretended) -> None:
    fstab = host.folder / "etc/fstab"
    before = fstab.read_bytes()
    perform(host, CLIENT)
    fstab.write_bytes(fstab.read_bytes() + b"/dev/sdb1 /data xfs defaults 0 0\n")
    report = perform(host, UndoRequest())
    assert "kept" in states(report)
    assert fstab.read_bytes() == before + b"\n/dev/sdb1 /data xfs defaults 0 0\n"


def test_a_file_of_ours_that_others_changed_is_not_overwritten(host: Pretended) -> None:
    perform(host, SERVER)
    (file,) = (host.folder / "etc/exports.d").iterdir()
    file.write_text("/srv/theirs trainer2(rw)\n")
    with pytest.raises(MachineRefuses, match="changed by somebody"):
        perform(host, UndoRequest())
    assert file.read_text() == "/srv/theirs trainer2(rw)\n"
    file.unlink()
    perform(host, UndoRequest())
    assert not (host.folder / FOLDER[1:]).exists()


def test_a_change_of_clients_is_made_and_both_are_undone(host: Pretended) -> None:
    before = copied(host)
    perform(host, SERVER)
    values = {**vars(SERVER), "clients": ("trainer2",)}
    report = perform(host, ServerRequest(**values))
    assert [line.text for line in report.steps if line.state == "done"] == [
        f"change {file}"
        for file in [f"/etc/exports.d/{p.name}" for p in (host.folder / "etc/exports.d").iterdir()]
    ]
    perform(host, UndoRequest())
    assert copied(host) == before


def test_what_lies_in_the_folder_stays(host: Pretended) -> None:
    perform(host, SERVER)
    weights = host.folder / SERVER.path[1:] / "weights"
    weights.write_bytes(b"dear")
    report = perform(host, UndoRequest())
    assert weights.read_bytes() == b"dear"
    assert "not empty" in next(line.detail for line in report.steps if line.state == "kept")


def test_configuration_that_removed_packages_had_left_is_left_again(host: Pretended) -> None:
    host.configured = {"nfs-kernel-server"}
    perform(host, SERVER)
    assert not host.configured
    perform(host, UndoRequest())
    assert host.configured == {"nfs-kernel-server"}
    assert host.installed == {"bash"}


def test_packages_that_a_power_cut_left_half_installed_go(
    host: Pretended, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Pretended.answer

    def half(self: Pretended, words: list[str]) -> Ran:
        if words[0] == "dpkg-query" and "half" in self.installed:
            return Ran(0, "installed bash\nunpacked nfs-kernel-server\n", "")
        if words[:2] == ["dpkg", "--purge"]:
            self.installed.discard("half")
        return answer(self, words)

    monkeypatch.setattr(Pretended, "answer", half)
    host.kill = "apt-get"
    with monkeypatch.context() as patch:
        patch.setattr("nfs_setup.transaction.roll_back", lambda *_: None)
        with pytest.raises(PowerCut):
            perform(host, SERVER)
    host.kill = ""
    host.installed.add("half")
    perform(host, UndoRequest())
    assert [ran for ran in host.ran if ran.startswith("dpkg")] == ["dpkg --purge nfs-kernel-server"]


def test_state_that_packages_left_goes_unless_it_was_there_or_is_in_use(host: Pretended) -> None:
    state = host.folder / "var/lib/nfs"
    perform(host, SERVER)
    (state / "link").symlink_to(host.folder / "srv")
    perform(host, UndoRequest())
    assert not state.exists()
    assert (host.folder / "srv").is_dir(), "links are not followed"

    perform(host, SERVER)
    host.mounted["/var/lib/nfs/rpc_pipefs"] = ("rpc_pipefs", "rw")
    host.shown()
    kept = perform(host, UndoRequest())
    assert "rpc_pipefs is mounted in it" in "".join(line.detail for line in kept.steps)
    host.mounted.clear()
    host.shown()

    perform(host, SERVER)
    perform(host, UndoRequest())
    assert (state / "etab").exists(), "it was there before"


def test_files_of_others_that_are_broken_do_not_keep_ours_from_going(host: Pretended) -> None:
    broken = "exportfs: /etc/exports.d/their.exports:1: syntax error: bad option list"
    host.fail["exportfs -ra"] = Ran(1, "", broken)
    before = tree(host.folder)
    with pytest.raises(MachineRefuses, match=r"their\.exports:1: syntax error") as caught:
        perform(host, SERVER)
    assert "mend the line" in caught.value.hint
    assert tree(host.folder) == before
    del host.fail["exportfs -ra"]
    perform(host, SERVER)
    host.fail["exportfs -ra"] = Ran(1, "", broken)
    undone = perform(host, UndoRequest())
    assert broken in "".join(line.detail for line in undone.steps)
    assert tree(host.folder) == before


def test_packages_stay_where_asked_or_where_others_need_them(host: Pretended) -> None:
    perform(host, SERVER)
    perform(host, UndoRequest(keep_packages=True))
    assert "nfs-kernel-server" in host.installed
    perform(host, CLIENT)
    host.fail["dpkg --purge"] = Ran(1, "", "autofs depends on nfs-common")
    report = perform(host, UndoRequest())
    (kept,) = (line for line in report.steps if line.state == "kept")
    assert "autofs depends on nfs-common" in kept.detail


def test_the_ledger_is_roots_alone(host: Pretended) -> None:
    perform(host, CLIENT)
    assert (host.folder / FOLDER[1:]).stat().st_mode & 0o777 == 0o700
    for file in (host.folder / FOLDER[1:]).iterdir():
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"{}", b'{"version": 9, "runs": []}', b'{"version": 1}'])
def test_a_ledger_that_cannot_be_read_stops_everything(host: Pretended, content: bytes) -> None:
    perform(host, CLIENT)
    (host.folder / FILE[1:]).write_bytes(content)
    before = copied(host)
    with pytest.raises(MachineRefuses, match=r"version|read"):
        perform(host, UndoRequest())
    with pytest.raises(MachineRefuses, match=r"version|read"):
        perform(host, SERVER)
    assert copied(host) == before


def test_a_backup_that_is_gone_is_named(host: Pretended) -> None:
    perform(host, CLIENT)
    for file in (host.folder / FOLDER[1:]).iterdir():
        if file.name != "ledger.json":
            file.write_bytes(b"forged")
    with pytest.raises(MachineRefuses, match="gone or changed"):
        perform(host, UndoRequest())


def test_one_at_a_time(host: Pretended) -> None:
    with host.exclusive(), pytest.raises(MachineRefuses, match="another 'bequeath nfs'"):
        perform(host, CLIENT)


def test_a_lock_that_cannot_be_had_is_an_error_of_the_machine(host: Pretended) -> None:
    (host.folder / "run/bequeath-nfs.lock").symlink_to("/etc/passwd")
    before = copied(host)
    with pytest.raises(MachineRefuses) as caught:
        perform(host, CLIENT)
    assert caught.value.where.endswith("bequeath-nfs.lock")
    assert copied(host) == before


def test_what_was_not_set_up_cannot_be_undone(host: Pretended) -> None:
    perform(host, CLIENT)
    with pytest.raises(RequestRefused) as caught:
        perform(host, UndoRequest("/mnt/other"))
    assert caught.value.hint == "there is: /mnt/w"


def test_a_mount_in_use_is_not_undone(host: Pretended) -> None:
    perform(host, CLIENT)
    process = host.folder / "proc/4711"
    (process / "fd").mkdir(parents=True)
    (process / "comm").write_text("python\n")
    (process / "fd/7").symlink_to("/mnt/w/weights/5")
    before = copied(host)
    with pytest.raises(MachineRefuses, match=r"in use by 4711 \(python\)"):
        perform(host, UndoRequest())
    assert copied(host) == before
    (process / "fd/7").unlink()
    (process / "fd/7").symlink_to("/mnt/we")
    perform(host, UndoRequest())


def test_a_server_in_use_is_not_undone_unless_asked(host: Pretended) -> None:
    perform(host, SERVER)
    info = host.folder / "proc/fs/nfsd/clients/3/info"
    info.parent.mkdir(parents=True)
    info.write_text('clientid: 0x1\naddress: "10.0.0.7:700"\nname: "Linux NFSv4.2 trainer1"\n')
    with pytest.raises(MachineRefuses, match=r"trainer1 at 10\.0\.0\.7"):
        perform(host, UndoRequest())
    assert perform(host, UndoRequest(while_clients_use_it=True)).changed


def test_files_are_replaced_whole_with_their_mode(tmp_path: Path) -> None:
    host = Pretended(tmp_path)
    fstab = tmp_path / "etc/fstab"
    fstab.chmod(0o640)
    held = fstab.open("rb")
    perform(host, CLIENT)
    assert fstab.stat().st_mode & 0o777 == 0o640
    with held:
        assert b"bequeath" not in held.read(), "who had it open reads the old one to its end"
    assert [p.name for p in (tmp_path / "etc").iterdir() if p.name.startswith(".")] == []
