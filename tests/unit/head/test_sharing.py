"""Who else may look into an experiment's folder: nobody, unless its file says so."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import ExperimentFileError, UserError
from dispatcher.experiment import build_experiment
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.snapshot import from_json
from dispatcher.experiments.creating import create
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.head.user_requests import UserRequests
from dispatcher.maintenance.backup import back_up
from dispatcher.queries import ExperimentReader, OptimizeMode, experiment_summary

NOBODY = 65534
SECRET = "planted-1234"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can play another user")


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that other users can walk into, as they cannot into pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="bq-shared-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(params=[0o022, 0o077], ids=["open umask", "closed umask"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def config(base: Path, **keys: Any) -> ExperimentConfig:
    return build_experiment(
        {
            "experimentName": "shared",
            "searchSpace": {"lr": {"_type": "choice", "_value": [1]}},
            "tuner": {"name": "Random"},
            "trialCommand": "true",
            "trialConcurrency": 1,
            "optimizeMode": "minimize",
            "trialEnvironment": {"API_TOKEN": SECRET},
            "experimentWorkingDirectory": str(base),
            **keys,
        }
    )


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def as_another(look: Callable[[], object], gid: int = NOBODY) -> bool:
    """Whether another user succeeds; in a process of its own, since there is no way back."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            look()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_nobody_looks_in_unless_told(base: Path, umask: None) -> None:
    """Mutation: the umask of whoever starts it, which mostly lets everybody in."""
    folder = create(config(base))
    assert mode(folder) == 0o700
    assert mode(folder / "experiment.json") == 0o600
    assert not (folder / "experiment.shared.json").exists()


@pytest.mark.parametrize(
    "word, folder_mode, file_mode", [("group", 0o750, 0o640), ("All", 0o755, 0o644)]
)
def test_shared(base: Path, umask: None, word: str, folder_mode: int, file_mode: int) -> None:
    folder = create(config(base, shareWith=word))
    assert mode(folder) == folder_mode
    assert mode(folder / "journal.sqlite") == file_mode
    assert mode(folder / "experiment.shared.json") == file_mode
    assert mode(folder / "experiment.json") == 0o600
    assert mode(folder / "keys") == 0o700
    text = (folder / "experiment.shared.json").read_text()
    assert SECRET not in text
    assert json.loads(text)["experiment"]["trialEnvironment"] == {"API_TOKEN": "[masked]"}
    assert SECRET in (folder / "experiment.json").read_text()


def test_no_other_word(base: Path) -> None:
    with pytest.raises(ExperimentFileError, match="shareWith"):
        config(base, shareWith="friends")


@needs_root
def test_another_user_looks(base: Path, umask: None) -> None:
    def look_at(folder: Path) -> Callable[[], object]:
        def look() -> None:
            with ExperimentReader.open(folder) as reader:
                assert experiment_summary(reader).mode is OptimizeMode.MINIMIZE
            assert SECRET not in ExperimentFolder(folder).read_config()

        return look

    shut, for_all, for_group = (
        create(config(base, shareWith=word)) for word in ("nobody", "all", "group")
    )
    os.chown(for_group, 0, 4321)
    for path in for_group.iterdir():
        os.chown(path, 0, 4321)
    ExperimentFolder(for_group).share("group")
    assert as_another(look_at(for_all))
    assert not as_another(look_at(shut))
    assert not as_another(look_at(for_group))
    assert as_another(look_at(for_group), gid=4321)
    assert not as_another(lambda: (for_all / "experiment.json").read_bytes())


def test_the_group_of_the_folder_above_is_kept(base: Path) -> None:
    base.chmod(0o2755)
    folder = create(config(base, shareWith="group"))
    assert mode(folder) == 0o2750


def test_what_is_updated_stays_shared_as_it_was(base: Path, umask: None) -> None:
    for word, many in (("all", 1), ("nobody", 0)):
        folder = ExperimentFolder(create(config(base, shareWith=word)))
        requests = UserRequests(from_json(folder.read_config()), folder)
        requests.update("maxTrialNumber", 7)
        assert mode(folder.config) == 0o600
        assert len(list(folder.path.glob("experiment.shared.json"))) == many
        if many:
            assert json.loads(folder.shared_config.read_text())["experiment"]["maxTrialNumber"] == 7
            assert mode(folder.shared_config) == 0o644


@pytest.mark.parametrize("taken", [0, 1], ids=["nothing", "one of two files"])
def test_an_update_that_the_disk_does_not_take_changes_nothing(
    base: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the head ends by it, with all it leads; or what others see is changed already."""
    folder = ExperimentFolder(create(config(base, shareWith="all")))
    desk = UserRequests(from_json(folder.read_config()), folder)
    before = folder.read_config(), folder.shared_config.read_text()
    given: list[int] = []

    def fsync(descriptor: int) -> None:
        given.append(descriptor)
        if len(given) > taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        with pytest.raises(UserError, match="written down: No space left"):
            desk.update("maxTrialNumber", 7)
    assert (folder.read_config(), folder.shared_config.read_text()) == before
    desk.update("trialConcurrency", 2)
    assert json.loads(folder.read_config())["experiment"].get("maxTrialNumber") != 7


def test_a_copy_is_shared_as_the_original(base: Path, umask: None) -> None:
    for word, wanted in (("nobody", 0o700), ("all", 0o755)):
        copy = back_up(create(config(base, shareWith=word)), base / "backups").folder
        assert mode(copy) == wanted
        assert mode(copy / "experiment.json") == 0o600


def test_a_record_of_the_version_before_is_read(base: Path) -> None:
    folder = ExperimentFolder(create(config(base)))
    record = json.loads(folder.read_config())
    del record["experiment"]["shareWith"]
    folder.config.write_text(json.dumps(record))
    folder.config.chmod(0o644)
    folder.path.chmod(0o755)
    assert from_json(folder.read_config()).share_with == "nobody"


def test_a_snapshot_of_the_code_has_no_file_that_a_reference_names(base: Path) -> None:
    """It would be sent with the code, since it lies in another place than the reference says."""
    code = base / "code"
    code.mkdir()
    for name in ("train.py", "key.txt"):
        (code / name).write_text("x")
    kept = config(
        base,
        trialCodeDirectory=str(code),
        trialEnvironment={"KEY": f"file:{code / 'key.txt'}"},
        trainingService={"platform": "local", "codeSnapshot": True},
    )
    copy = ExperimentFolder(create(kept)).code
    assert [path.name for path in copy.iterdir()] == ["train.py"]
