"""Another user's experiment: found by its path only, read only, never led, asked or believed."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.api import Experiment
from dispatcher.attempt_files.attempt_at import AttemptAt
from dispatcher.attempt_files.gathering import Gathering
from dispatcher.attempt_files.ways import files_of
from dispatcher.control.client import HeadClient
from dispatcher.errors import ExperimentNotFound
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.experiments import find
from dispatcher.experiments.find import Purpose
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.experiments.processes import kill_experiment, start_in_background
from dispatcher.experiments.why import asked
from dispatcher.folders.experiment_folder import ExperimentFolder, new_id
from dispatcher.folders.ownership import NotOurs, demand_ours, is_id, is_ours, why_foreign
from dispatcher.head.head import Head
from dispatcher.queries import ExperimentStatus
from dispatcher.web.saved.contents import StoredRun
from dispatcher.wiring.remote_roots import storage_of, stores_of
from tests.unit.cli.conftest import Shell
from tests.unit.queries.evolution import evolve, make_folder

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can play another user")


def give_away(folder: Path, uid: int = NOBODY) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)


@pytest.fixture
def foreign(home: Path) -> Path:
    folder = make_folder(home, "nice results", "nice-results-ab2345")
    evolve(folder, 3)
    (folder / "logs").mkdir()
    give_away(folder)
    return folder


@needs_root
def test_what_is_not_named_is_ours(home: Path, foreign: Path, bequeath: Shell) -> None:
    with pytest.raises(ExperimentNotFound):
        find.find(None, home, Purpose.RESUME)
    with pytest.raises(ExperimentNotFound):
        find.find(None, home)
    for word in ("nice", "nice results", foreign.name):
        with pytest.raises(ExperimentNotFound, match="no experiment of ours") as caught:
            find.find(word, home)
        assert "by its path" in caught.value.hint
    assert find.all_experiments(home) == []
    assert find.completions("nice") == []
    assert find.experiments_of_others(home) == 1
    listed = bequeath("experiment", "list")
    assert "nice" not in listed.out
    assert "1 experiment of other users" in listed.err


@needs_root
def test_by_its_path_it_is_read_and_nothing_is_left_there(foreign: Path, bequeath: Shell) -> None:
    before = {path.name for path in foreign.rglob("*")}
    for words in (
        ("status", foreign),
        ("why", foreign),
        ("best", foreign),
        ("lineage", foreign),
        ("trial", "ls", foreign),
        ("experiment", "show", foreign),
        ("experiment", "export", foreign),
    ):
        said = bequeath(*words)
        assert said.code == 0, (words, said.err)
    assert {path.name for path in foreign.rglob("*")} == before


@needs_root
@pytest.mark.parametrize(
    "words",
    [
        ("resume",),
        ("resume", "--background"),
        ("resume", "--take-over"),
        ("stop",),
        ("kill", "--yes"),
        ("top", "--once"),
        ("weights", "gc", "--yes"),
        ("weights", "gc", "--dry-run"),
        ("weights", "du"),
        ("weights", "versions"),
        ("experiment", "delete", "--yes"),
        ("experiment", "verify"),
        ("experiment", "compact"),
        ("experiment", "fetch"),
        ("experiment", "update", "maxTrialNumber", "5", "--experiment"),
        ("weights", "export", "0", "--experiment"),
        ("weights", "pin", "0", "--experiment"),
        ("tuner", "replay"),
        ("trial", "shell", "0", "--experiment"),
        ("trial", "submit", "{}", "--experiment"),
        ("trial", "kill", "1", "--experiment"),
        ("trial", "note", "1", "mine", "--experiment"),
        ("trial", "tag", "1", "mine", "--experiment"),
        ("trial", "star", "1", "--experiment"),
        ("experiment", "note", "mine", "--experiment"),
        ("experiment", "tag", "mine", "--experiment"),
        ("experiment", "star"),
    ],
    ids=" ".join,
)
def test_it_is_not_changed(
    foreign: Path, bequeath: Shell, tmp_path: Path, words: tuple[str, ...]
) -> None:
    def contents() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in foreign.rglob("*") if p.is_file()}

    before = contents()
    said = bequeath(*words, foreign)
    assert said.code == 3, said
    assert "somebody else's experiment" in said.err
    assert contents() == before


@needs_root
def test_what_root_shares_is_roots() -> None:
    """Root's experiments lie where all may look; ``run.json`` and the file are for root only."""
    with tempfile.TemporaryDirectory() as text:  # the folders of pytest are for root only
        home = Path(text)
        folder = make_folder(home, "nice results", "nice-results-ab2345")
        evolve(folder, 3)
        for path in (home, folder):
            path.chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0o644)  # as 0.1.0 left them
        assert _as_nobody(lambda: find.find(folder.name, home, Purpose.USE).name) == folder.name
        (folder / "run.json").write_text("{}")
        (folder / "run.json").chmod(0o600)
        assert "we may not read it" in _as_nobody(lambda: why_foreign(folder))
        assert _as_nobody(lambda: asked(folder)) == "None"  # and no PermissionError
        assert _as_nobody(lambda: find.find(str(folder), home).name) == folder.name
        for way in (lambda: HeadClient(folder), lambda: find.find(str(folder), home, Purpose.USE)):
            assert "NotOurs" in _as_nobody(way)
        assert why_foreign(folder) == ""  # for root it is ours


def _as_nobody(ask: Callable[[], object]) -> str:
    """What a function answers, or raises, in a process of another user."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            answer = str(ask())
        except BaseException as error:  # noqa: BLE001 - nothing may leave the child but its answer
            answer = repr(error)
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        answer = file.read().decode()
    os.waitpid(child, 0)
    return answer


@needs_root
def test_every_way_to_lead_or_ask_it_is_closed(foreign: Path, tmp_path: Path) -> None:
    """Whoever comes past the finders is stopped where it would be led, ended or asked."""
    (foreign / "run.json").write_text(
        '{"pid": 1, "address": "tcp://127.0.0.1:1", "token": "x", "epoch": 1, "started_at": 0.0}'
    )
    ways: tuple[Callable[[], object], ...] = (
        lambda: Head(foreign).run(),
        lambda: start_in_background(foreign),
        lambda: kill_experiment(foreign),
        lambda: HeadClient(foreign),
    )
    for way in ways:
        with pytest.raises(NotOurs, match="user 65534"):
            way()
    assert asked(foreign) is None
    assert not (foreign / "head.lock").exists()


@needs_root
def test_what_its_file_refers_to_is_not_looked_up(
    home: Path, tmp_path: Path, bequeath: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a remote root that is opened whoever wrote its options."""
    (tmp_path / "id_ed25519").write_text("SECRET")
    values = {
        "tuner": {"name": "Random"},
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "true",
        "trialConcurrency": 1,
        "weightsRoot": "sftp://eve@127.0.0.1:1/x",
        "weightsRootOptions": {"password": f"file:{tmp_path / 'id_ed25519'}"},
    }
    config = build_experiment(values, base_folder=home)
    folder = make_folder(home, "evil", "evil-ab2345")
    evolve(folder, 2)
    (folder / "experiment.json").write_text(to_json(config))
    looked_up: list[str] = []
    monkeypatch.setattr(
        "trial_runtime.weights.remote.credentials._look_up",
        lambda path, *_: looked_up.append(path),
    )
    give_away(folder)
    for ask in (storage_of, stores_of):
        with pytest.raises(NotOurs):
            ask(config, ExperimentFolder(folder))
    assert bequeath("weights", "du", folder).code == 3
    assert bequeath("experiment", "show", folder).code == 0
    opened = Experiment.open(folder)
    assert opened.status().status is ExperimentStatus.CREATED
    with pytest.raises(NotOurs):
        opened.start()
    assert looked_up == []


@needs_root
def test_nobody_logs_in_where_its_file_says(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: passwords that are looked up for the machines of a stranger's file."""
    (tmp_path / "password").write_text("SECRET")
    values = {
        "tuner": {"name": "Random"},
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "true",
        "trialConcurrency": 1,
        "trialEnvironment": {"TOKEN": f"file:{tmp_path / 'password'}"},
        "trainingService": [
            {"platform": "local"},
            {
                "platform": "ssh",
                "machineList": [{"host": "h", "password": f"file:{tmp_path / 'password'}"}],
            },
        ],
    }
    config = build_experiment(values, base_folder=home)
    folder = ExperimentFolder(make_folder(home, "evil", "evil-ab2345"))
    folder.write_config(to_json(config))
    give_away(folder.path)
    looked_up = _count_references(monkeypatch)
    there, here = AttemptAt("h", 0, 1, 0), AttemptAt(None, 0, 1, 0)
    with pytest.raises(NotOurs):
        files_of(folder, there)
    with pytest.raises(NotOurs):
        files_of(folder, here, for_shell=True)
    with pytest.raises(NotOurs):
        list(Gathering(config, folder, lambda _: None).once())
    assert not files_of(folder, here).list(most=10).entries
    assert looked_up == []


@needs_root
def test_a_saved_run_says_nothing_of_what_its_file_refers_to(
    home: Path, tmp_path: Path, bequeath: Shell
) -> None:
    """Mutation: a secret of the one who saves is masked in a stranger's run, which tells him that
    he has guessed it; a file without end is read, since a stranger's file says so."""
    (tmp_path / "password").write_text("SECRET-of-mine")
    values = {
        "tuner": {"name": "Random"},
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "true",
        "trialConcurrency": 1,
        "trialEnvironment": {"TOKEN": f"file:{tmp_path / 'password'}", "MORE": "env:PATH"},
    }
    folder = make_folder(home, "evil", "evil-ab2345")
    evolve(folder, 2)
    text = to_json(build_experiment(values, base_folder=home))
    (folder / "experiment.json").write_text(text.replace("env:PATH", "file:/dev/zero#a"))
    store = sqlite3.connect(folder / "journal.sqlite")
    store.execute("UPDATE trials SET error = 'is it SECRET-of-mine?' WHERE id = 1")
    store.commit()
    store.close()
    run = StoredRun(ExperimentHandle(folder))
    assert "is it [masked]?" in str(run.details([1], 3))  # as long as it is ours
    give_away(folder)
    run = StoredRun(ExperimentHandle(folder))
    assert "is it SECRET-of-mine?" in str(run.details([1], 3))
    target = tmp_path / "run.html"
    done = bequeath("web", "--export", folder, "-o", target, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["unmasked"] == [f"file:{tmp_path / 'password'}", "file:/dev/zero#a"]


def _count_references(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    looked_up: list[str] = []
    for place in ("dispatcher.platforms.logins.targets", "dispatcher.experiment.references"):
        monkeypatch.setattr(f"{place}.resolve_reference", lambda text, *_: looked_up.append(text))
    monkeypatch.setattr(
        "dispatcher.platforms.local.files.resolve_references", lambda told: looked_up.extend(told)
    )
    return looked_up


@needs_root
def test_a_file_of_somebody_else_in_a_folder_of_ours(home: Path) -> None:
    folder = make_folder(home)
    assert is_ours(folder)
    os.chown(folder / "experiment.json", NOBODY, NOBODY)
    assert "experiment.json belongs to" in why_foreign(folder)


@needs_root
def test_what_a_link_in_a_folder_of_ours_leads_to_is_judged(home: Path, foreign: Path) -> None:
    """Mutation: the link alone, which a trial may have put there."""
    folder = make_folder(home)
    evolve(folder, 1)
    before = (foreign / "journal.sqlite").read_bytes()
    (folder / "journal.sqlite").unlink()
    (folder / "journal.sqlite").symlink_to(foreign / "journal.sqlite")
    assert "journal.sqlite belongs to" in why_foreign(folder)
    with pytest.raises(NotOurs):
        ExperimentHandle(folder).annotations.add_note(None, "mine")
    assert (foreign / "journal.sqlite").read_bytes() == before


@needs_root
def test_a_link_is_judged_and_where_it_leads(home: Path, tmp_path: Path) -> None:
    ours = make_folder(tmp_path / "disk")
    link = home / ours.name
    link.symlink_to(ours)
    assert is_ours(link)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    assert not is_ours(link)  # whoever owns the link says where it leads
    link.unlink()
    link.symlink_to(ours)
    os.chown(ours, NOBODY, NOBODY)
    assert not is_ours(link)


@needs_root
def test_what_root_owns_counts_as_ours_unless_others_write_there(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder(home)
    folder.chmod(0o777)
    assert is_ours(folder)  # our own may be open: that is our affair
    monkeypatch.setattr("dispatcher.folders.ownership.os.geteuid", lambda: NOBODY)
    for mode, ours in ((0o755, True), (0o775, False), (0o757, False)):
        folder.chmod(mode)
        assert is_ours(folder) is ours


@needs_root
def test_one_owner_for_all_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As FUSE and squashing servers have it: a file that we make there belongs to the same."""
    folder = make_folder(home)
    give_away(folder)
    with pytest.raises(NotOurs):
        demand_ours(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["experiment.json"]
    fstat = os.fstat

    def squashed(number: int) -> os.stat_result:
        found = list(fstat(number))
        found[4] = NOBODY
        return os.stat_result(found)

    monkeypatch.setattr("dispatcher.folders.ownership.os.fstat", squashed)
    demand_ours(folder)


def test_an_experiment_of_the_version_before_is_ours(home: Path) -> None:
    """Mutation: a judge who asks for the modes of today."""
    folder = make_folder(home)
    evolve(folder, 2)
    folder.chmod(0o775)
    (folder / "experiment.json").chmod(0o664)
    assert find.find(None, home, Purpose.RESUME) == folder
    demand_ours(folder)


def test_tab_offers_ids_only(home: Path) -> None:
    """Mutation: names as they are; a shell takes them as a part of its command line."""
    hostile = (
        "zz$(id>pwned)",
        "zz;id",
        "zz`id`",
        "zz id",
        "zz\nid",
        "zz\x1b[2J",
        "-zz",
        "zz'",
        "zé",
    )
    for name in hostile:
        make_folder(home, "x", name)
        assert not is_id(name)
    (home / "zz-no-experiment").touch()
    assert find.completions("") == []
    ours = make_folder(home, "x", new_id("zz net"))
    assert find.completions("zz") == [ours.name]
    for name in ("a b$(c)", "é", "-", "", "x" * 300):
        assert is_id(new_id(name))


def test_settings_are_shown(home: Path, bequeath: Shell) -> None:
    folder = make_folder(home)
    evolve(folder, 1)
    assert json.loads(bequeath("experiment", "show", folder).out)["experiment"] == folder.name
