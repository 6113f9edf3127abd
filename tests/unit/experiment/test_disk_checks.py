"""What is looked at on disk before anything starts."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.experiment import load_experiment
from dispatcher.experiment.checks import cannot_start
from dispatcher.experiment.code_folder import measure, too_large
from dispatcher.experiment.python_source import ModuleSource, find_module, missing_name

from .conftest import GOOD

Errors = Callable[..., list[str]]
COMMAND = "trialCommand: python3 -c 'print(1)'"


def _with_command(command: str) -> str:
    return GOOD.replace(COMMAND, f"trialCommand: {command}")


@pytest.fixture
def programs(tmp_path: Path) -> str:
    """A PATH with one program called python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python").touch(0o755)
    return str(folder)


@pytest.mark.parametrize(
    "command",
    [
        "python -c 'print(1)'",
        "python trial.py --lr 3",
        "python -m trial",
        "cd sub && pyhton x.py",
        "LR=3 pyhton x.py",
        "$PYTHON x.py",
        "'my program' x",
        "(pyhton x.py)",
        "./run.sh",
        "source env/bin/activate; python x.py",
        "python trial.py; exit 1",
    ],
)
def test_commands_that_may_start(tmp_path: Path, programs: str, command: str) -> None:
    (tmp_path / "trial.py").touch()
    (tmp_path / "run.sh").touch(0o755)
    assert cannot_start(command, tmp_path, programs) is None


@pytest.mark.parametrize(
    "command,said",
    [
        (
            "pyhton trial.py",
            "starts with 'pyhton', and there is no such command; did you mean 'python'?",
        ),
        ("frobnicate", "starts with 'frobnicate', and there is no such command"),
        ("run.sh", "starts with 'run.sh', and there is no such command"),
        ("./nope.sh x", "starts with './nope.sh', and there is no such file in {}"),
        ("./run.sh", "starts with './run.sh', which is not executable"),
        (
            "python trail.py",
            "runs 'trail.py', and there is no such file in {}; did you mean 'trial.py'?",
        ),
        ("   ", "is empty"),
    ],
)
def test_commands_that_cannot(tmp_path: Path, programs: str, command: str, said: str) -> None:
    (tmp_path / "trial.py").touch()
    (tmp_path / "run.sh").touch(0o644)
    problem = cannot_start(command, tmp_path, programs)
    assert problem is not None
    assert problem[0] == said.format(tmp_path)


def test_a_program_in_the_code_directory_needs_its_dot(tmp_path: Path, programs: str) -> None:
    (tmp_path / "run.sh").touch(0o755)
    problem = cannot_start("run.sh", tmp_path, programs)
    assert problem is not None
    assert problem[1] == "write './run.sh' to run the one in the code directory"


def test_a_missing_command_is_placed(errors_of: Errors) -> None:
    assert errors_of(_with_command("frobnicate-it now")) == [
        "e.yml:5:15: 'trialCommand' starts with 'frobnicate-it', and there is no such command"
    ]


def test_too_many_files_name_the_fullest_folder(errors_of: Errors, tmp_path: Path) -> None:
    data = tmp_path / "code" / "data"
    data.mkdir(parents=True)
    for i in range(6):
        (data / f"{i}.txt").touch()
    text = GOOD + "trialCodeDirectory: code\nlimits: {maxCodeFiles: 5}\n"
    assert errors_of(text) == [
        "e.yml:7:21: 'trialCodeDirectory' holds 7 files and folders, 5 are allowed; "
        "data/ has 6 of them\n"
        "  name in .bequeathignore what is no code, keep data in another folder, or raise 'limits'"
    ]


def test_too_many_bytes_name_the_largest_file(errors_of: Errors, tmp_path: Path) -> None:
    (tmp_path / "code" / "sub").mkdir(parents=True)
    (tmp_path / "code" / "small.py").write_bytes(b"x" * 100)
    with (tmp_path / "code" / "sub" / "weights.bin").open("wb") as file:
        file.truncate(3 << 20)
    text = GOOD + "trialCodeDirectory: code\nlimits: {maxCodeSize: 1mb}\n"
    assert errors_of(text) == [
        "e.yml:7:21: 'trialCodeDirectory' holds 3.0mb, 1mb are allowed; "
        "sub/weights.bin alone has 3.0mb\n"
        "  name in .bequeathignore what is no code, keep data in another folder, or raise 'limits'"
    ]


def test_what_is_left_out_does_not_count(errors_of: Errors, tmp_path: Path) -> None:
    """Mutation: data that goes nowhere keeps an experiment from starting."""
    sub = tmp_path / "code" / "sub"
    sub.mkdir(parents=True)
    with (sub / "weights.bin").open("wb") as file:
        file.truncate(3 << 20)
    text = GOOD + "trialCodeDirectory: code\nlimits: {maxCodeSize: 1mb}\n"
    assert "sub/weights.bin alone has 3.0mb" in errors_of(text)[0]
    (sub / ".bequeathignore").write_text("*.bin\n")
    assert load_experiment(tmp_path / "e.yml").limits.max_code_size == 1 << 20
    (tmp_path / "code" / ".nniignore").write_text("sub/\n")
    assert measure(tmp_path / "code").entries == 1
    (tmp_path / "code" / ".bequeathignore").write_bytes(b"\xff")
    (error,) = errors_of(text)
    assert "'trialCodeDirectory' holds " in error
    assert ".bequeathignore, which cannot be read: 'utf-8'" in error


def test_a_link_out_of_the_code_is_said_where_it_must_be_sent(
    errors_of: Errors, tmp_path: Path
) -> None:
    """Mutation: each machine says it, once it is reached."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "data").symlink_to("/")
    text = GOOD + "trialCodeDirectory: code\n"
    (tmp_path / "here.yml").write_text(text)
    load_experiment(tmp_path / "here.yml")
    text += "trainingService: {platform: ssh, machineList: [{host: a}]}\nweightsRoot: /tmp\n"
    assert errors_of(text) == [
        "e.yml:7:21: 'trialCodeDirectory' cannot be sent to machines: data leads out of the code "
        "folder, to /\n  copy what it leads to, name the link in .bequeathignore, or keep data "
        "where all machines see it"
    ]
    (code / ".bequeathignore").write_text("/data\n")
    load_experiment(tmp_path / "e.yml")


def test_history_caches_links_and_our_own_folders_do_not_count(tmp_path: Path) -> None:
    for name in (".git", "__pycache__", ".venv", "ours"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    os.symlink("/", tmp_path / "root")
    (tmp_path / "trial.py").write_bytes(b"12345")
    measured = measure(tmp_path, [tmp_path / "ours"])
    assert measured.entries == 2
    assert measured.largest == (tmp_path / "trial.py", 5)
    assert too_large(tmp_path, measured, 2, 1000) == ""


def test_a_code_directory_that_is_a_file(errors_of: Errors) -> None:
    assert errors_of(GOOD + "trialCodeDirectory: e.yml\n") == [
        "e.yml:7:21: 'trialCodeDirectory' is not a folder: e.yml"
    ]


def test_modules_are_found_without_running_them(tmp_path: Path) -> None:
    package = tmp_path / "mine" / "deep"
    package.mkdir(parents=True)
    (tmp_path / "mine" / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "tuner.py").write_text("class Mine: ...")
    assert find_module("mine.deep.tuner", tmp_path) == ModuleSource(package / "tuner.py")
    assert find_module("mine.deep.nope", tmp_path) is None
    assert find_module("no_such_module_anywhere", tmp_path) is None
    assert find_module("math", None) == ModuleSource(None)
    json_found = find_module("json.decoder", None)
    assert json_found is not None
    assert json_found.source is not None
    assert json_found.source.name == "decoder.py"


def test_the_authors_own_module_comes_before_ours(tmp_path: Path) -> None:
    (tmp_path / "dispatcher.py").touch()
    assert find_module("dispatcher", tmp_path) == ModuleSource(tmp_path / "dispatcher.py")


@pytest.mark.parametrize(
    "text",
    [
        "class Mine: ...",
        "Mine = make()",
        "from elsewhere import Mine",
        "from elsewhere import Other as Mine",
        "from elsewhere import *",
        "if True:\n    class Mine: ...",
        "def __getattr__(name): ...",
    ],
)
def test_names_that_a_file_may_define(tmp_path: Path, text: str) -> None:
    file = tmp_path / "f.py"
    file.write_text(text)
    assert missing_name(file, "Mine") is None


@pytest.mark.parametrize(
    "text,said",
    [
        ("class Mien: ...", "is not in {}: nothing there is called 'Mine'; did you mean 'Mien'?"),
        ("", "is not in {}: nothing there is called 'Mine'"),
        ("x = (", "is in {}, line 1, which is not Python: '(' was never closed"),
    ],
)
def test_names_that_it_does_not(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "f.py"
    file.write_text(text)
    problem = missing_name(file, "Mine")
    assert problem is not None
    assert problem[0] == said.format(file)


def test_a_tuner_class_that_is_missing_is_placed(errors_of: Errors, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Evolution: ...")
    own = GOOD.replace("name: Random", "className: mine:Evoluton")
    assert errors_of(own) == [
        "e.yml:4:14: 'tuner.className' is not in mine.py: nothing there is called 'Evoluton'; "
        "did you mean 'Evolution'?"
    ]
    (error,) = errors_of(GOOD.replace("name: Random", "className: no_such_module:X"))
    assert error.startswith(
        "e.yml:4:14: 'tuner.className' names the module 'no_such_module', which is neither in "
    )


def test_a_trial_function_that_is_missing_is_placed(errors_of: Errors, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("def main(): ...")
    assert errors_of(GOOD.replace(COMMAND, "trialFunction: train:mian")) == [
        "e.yml:5:16: 'trialFunction' is not in train.py: nothing there is called 'mian'; "
        "did you mean 'main'?"
    ]


def test_a_preloaded_module_that_is_not_installed(errors_of: Errors) -> None:
    assert errors_of(GOOD + "trainingService: {preload: [json, no_such_module]}\n") == [
        "e.yml:7:35: 'trainingService.preload[1]' names a module that is not installed: "
        "'no_such_module'"
    ]


def test_a_reference_that_leads_nowhere(
    errors_of: Errors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    assert errors_of(GOOD + "trialEnvironment: {T: 'env:NO_SUCH_TOKEN'}\n") == [
        "e.yml:7:23: 'trialEnvironment.T' refers to the variable 'NO_SUCH_TOKEN', "
        "which is not set here\n"
        "  write 'literal:env:NO_SUCH_TOKEN' if the text itself is meant"
    ]
    file = tmp_path / "good.yml"
    file.write_text(GOOD + "trialEnvironment: {T: 'literal:env:NO_SUCH_TOKEN', N: 1}\n")
    environment = load_experiment(file).trial_environment
    assert environment == {"T": "literal:env:NO_SUCH_TOKEN", "N": "1"}


def test_things_that_no_machine_has_are_told_at_once(errors_of: Errors, tmp_path: Path) -> None:
    """``run`` would say it as well, once all machines have spoken. Mutations: what several
    machines have counts together; a key below the service is named at the top."""
    hint = "\n  what a machine has stands in its 'resources', or in its service's"
    assert errors_of(GOOD + "trialResources: {licence: 3}\n") == [
        "e.yml:7:17: 'trialResources' asks for 3 of 'licence', and the most that a machine has "
        "is 0" + hint
    ]
    ssh = "trainingService:\n  platform: ssh\n  resources: {tape: 1}\n  machineList:\n"
    ssh += "  - {host: a, resources: {licence: 2}}\n  - {host: b}\n"
    assert errors_of(GOOD + ssh + "  trialResources: {tape: 1, licence: 1}\n") == [
        "e.yml:13:19: 'trainingService.trialResources' asks for 'tape', 'licence' together, and no "
        "one machine has them all" + hint
    ]
    file = tmp_path / "good.yml"
    file.write_text(GOOD + ssh + "trialResources: {licence: 2}\n")
    assert load_experiment(file).trial_resources == {"licence": 2}
