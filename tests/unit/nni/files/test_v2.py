"""Files of v2 and v3: told from ours, and honoured or refused key by key."""

from __future__ import annotations

import json

import pytest

from dispatcher.experiment import build_experiment
from tests.unit.nni.files.conftest import V2, Files
from tuners.builtin import make_builtin


def test_code_that_imports_nni_makes_a_file_one_of_nnis(files: Files) -> None:
    config = files.load(V2)
    assert config.for_nni
    assert config.multi_thread is False
    assert config.effective_lookahead == config.asks_at_most == 2
    (files.folder / "code" / "waves.py").write_text("class Waves: pass\n")
    (files.folder / "code" / "train.py").write_text("print('import nni')\n")
    ours = files.load(V2)
    assert not ours.for_nni
    assert ours.multi_thread is True


def test_a_file_of_ours_stays_ours(files: Files) -> None:
    assert not files.load("compatibility: none\n" + V2).for_nni
    assert files.load("compatibility: nni\n" + V2).multi_thread is True  # as the file says it
    values = {"tuner": {"name": "Random"}, "trialCommand": "true", "trialConcurrency": 1}
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    assert not build_experiment({**values, "searchSpace": space}).for_nni


@pytest.mark.parametrize(
    "mark", ["experimentType: hpo", "nni_manager_ip: 10.0.0.1", "useAnnotation: false"]
)
def test_keys_that_only_nni_has(files: Files, mark: str) -> None:
    (files.folder / "code" / "waves.py").write_text("class Waves: pass\n")
    (files.folder / "code" / "train.py").write_text("")
    assert files.load(f"{V2}{mark}\n").for_nni


def test_what_the_service_repeats_overrides_the_top_level(files: Files) -> None:
    (files.folder / "code" / "other.py").write_text("")
    own = "  trialCommand: python3 other.py\n  trialGpuNumber: 2\n  reuseMode: true\n"
    config = files.load(V2 + own)
    assert config.trial_command == "python3 other.py"
    assert config.trial_gpu_number == 2
    assert config.services[0].reuse_mode == "none"


def test_multi_thread_of_old_releases(files: Files) -> None:
    assert files.load(V2 + "multiThread: true\n").multi_thread is True
    assert files.load(V2 + "deprecated: {multiThread: true}\n").multi_thread is True


def test_algorithms_by_name(files: Files) -> None:
    (files.folder / "space.json").write_text('{"x": {"_type": "uniform", "_value": [0, 1]}}')
    own = "  className: waves.Waves\n  codeDirectory: code\n  classArgs: {size: 3}\n"
    numbers = "{n_startup_jobs: 7, constant_liar_type: null, linear_forgetting: 9, gamma: 0.5}"
    tpe = f"  name: tpe\n  classArgs: {{tpe_args: {numbers}}}\n"
    assessor = "assessor:\n  name: Medianstop\n  classArgs: {start_step: 3}\n"
    config = files.load(V2.replace(own, tpe) + assessor)
    assert config.tuner.name == "NniTPE"
    assert config.tuner.class_args == {
        "n_startup_trials": 7,
        "constant_liar": False,
        "linear_forgetting": 9,
        "gamma": 0.5,
    }
    assert config.optimize_mode == "minimize"  # NNI's TPE does so unless told otherwise
    assert config.assessor is not None
    assert config.assessor.class_args == {"start_step": 3}
    remarks: list[str] = []
    stands_in = files.load(V2.replace(own, "  name: Anneal\n"), remarks)
    assert stands_in.tuner.name == "TPE"
    assert any("Anneal is not here" in text for text in remarks)


def test_the_tuner_sees_the_gpus_that_the_file_gives_it(files: Files) -> None:
    assert files.load(V2 + "tunerGpuIndices: [0, 2]\n").tuner.gpu_indices == (0, 2)


@pytest.mark.parametrize("tuner", ["all", "3", "[a, b]", "[1]", ".nan"])
def test_a_tuner_that_is_no_section_is_named_where_its_gpus_are_given(
    files: Files, tuner: str
) -> None:
    text = f"tuner: {tuner}\ntunerGpuIndices: [0]\n" + V2.replace("tuner:", "x-tuner:")
    (error,) = files.errors(text)
    assert error.startswith("e.yml:1:8: 'tuner' must be a section of keys, not ")


WRONG = {
    "experimentType: nas": "e.yml:14:17: 'experimentType' is 'nas'",
    "sharedStorage: {storageType: NFS}": "e.yml:14:1: 'sharedStorage' cannot be honoured",
    "maxTrialNumer: 3": "e.yml:14:1: unknown key 'maxTrialNumer'; did you mean 'maxTrialNumber'?",
    "trial_gpu_number: x": "e.yml:14:1: 'trial_gpu_number' says another thing than",
    "training_service: {platform: remote}": (
        "e.yml:14:1: 'training_service' is 'trainingService' in another spelling"
    ),
}


@pytest.mark.parametrize("line", WRONG)
def test_what_cannot_be_honoured_is_refused_at_its_place(files: Files, line: str) -> None:
    errors = files.errors(f"{V2}{line}\n")
    assert any(error.startswith(WRONG[line]) for error in errors), errors


@pytest.mark.parametrize("name", ["PBT", "Hyperband", "TPE", "Random", "GP"])
def test_names_that_are_ours_as_well_make_no_file_nnis(files: Files, name: str) -> None:
    (files.folder / "code" / "train.py").write_text("")
    (files.folder / "code" / "waves.py").unlink()
    own = "  className: waves.Waves\n  codeDirectory: code\n  classArgs: {size: 3}\n"
    config = files.load(V2.replace(own, f"  name: {name}\n"))
    assert not config.for_nni
    assert config.tuner.name == name


@pytest.mark.parametrize("machines", ["5", "true", "x", "{host: a}", "[5]"])
def test_machines_that_are_no_list_are_named(files: Files, machines: str) -> None:
    """Mutation: who looks for keys of NNI's goes through them, whatever they are."""
    text = V2.replace("platform: local", f"platform: remote\n  machineList: {machines}")
    errors = files.errors(text)
    assert any("'trainingService.machineList" in error for error in errors), errors


BUILT_IN = V2.replace(
    "  className: waves.Waves\n  codeDirectory: code\n  classArgs: {size: 3}\n", "  name: Random\n"
)


@pytest.mark.parametrize(
    "command,files_there,theirs",
    [
        ("cd src && python3 main.py", {"src/main.py": "import nni\n"}, True),
        ("python3 main.py", {"main.py": "import train\n", "train.py": "from nni import x\n"}, True),
        ("bash run.sh", {"run.sh": "", "train.py": "import  nni.tuner\n"}, True),
        ("bash run.sh", {"run.sh": "", "a/b/train.py": "import nni\n"}, True),
        ("python3 main.py", {"main.py": "import os, json as j, nni\n"}, True),
        ("python3 main.py", {"main.py": "import trial_runtime\n", "old.py": "import nni\n"}, False),
        (
            "python3 main.py",
            {"main.py": "import bequeath as bq\n", "old.py": "import nni\n"},
            False,
        ),
        ("python3 main.py", {"main.py": "import nnifty\n'''\nno import nni\n'''\n"}, False),
    ],
)
def test_code_says_whom_it_is_written_for(
    files: Files, command: str, files_there: dict[str, str], theirs: bool
) -> None:
    code = files.folder / "code"
    for name in ("train.py", "waves.py"):
        (code / name).unlink()
    for name, text in files_there.items():
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text(text)
    text = BUILT_IN.replace("trialCommand: python3 train.py", f"trialCommand: {command}")
    assert files.load(text).for_nni is theirs


def test_a_program_that_imports_nothing_is_nobodys_whatever_lies_beside_it(files: Files) -> None:
    """Its file says where its results are. Mutation: old scripts for NNI in a folder of its own
    make the search one of NNI's."""
    (files.folder / "code" / "main.py").write_text("print('accuracy=1')\n")
    (files.folder / "code" / "old").mkdir()
    (files.folder / "code" / "old" / "script.py").write_text("import nni\n")
    (files.folder / "code" / "waves.py").unlink()
    text = BUILT_IN.replace("train.py", "main.py")
    assert files.load(text).for_nni
    assert not files.load(text + "metrics: {stdout: true, objective: accuracy}\n").for_nni
    (files.folder / "code" / "main.py").write_text("import nni\n")
    (error,) = files.errors(text + "metrics: {stdout: true, objective: accuracy}\n")
    assert "or write 'compatibility: none'" in error


def test_a_machines_keys_that_only_nni_has(files: Files) -> None:
    """As NNI's own example has them, where the script it names is not there yet."""
    (files.folder / "code" / "waves.py").write_text("class Waves: pass\n")
    (files.folder / "code" / "train.py").write_text("")
    (files.folder / "key").write_text("")
    machine = "  machineList:\n  - {host: a.example, user: u, ssh_key_file: key}\n"
    assert files.load(V2.replace("local", "remote") + machine).for_nni


def test_a_refused_service_hides_no_other(files: Files) -> None:
    """Mutation: it is taken for a second local one, and that is said as well."""
    services = "- {platform: paiYarn, host: h}\n- {platform: local}\n"
    text = V2.replace("  platform: local\n", services)
    (error,) = files.errors(text)
    assert "'paiYarn'" in error


def test_keys_given_twice_are_taken_as_nni_takes_them_and_said(files: Files) -> None:
    remarks: list[str] = []
    (files.folder / "space.json").write_text('{"x": 1,\n"x": {"_type": "choice", "_value": [1]}}')
    config = files.load(V2 + "maxTrialNumber: 12\n", remarks)
    assert config.max_trial_number == 12
    assert config.search_space == {"x": {"_type": "choice", "_value": [1]}}
    said = [text.replace(f"{files.folder}/", "") for text in remarks if "twice" in text]
    assert said == [
        "line 14: the key 'maxTrialNumber' is given twice, first in line 7; "
        "this one counts, as with NNI",
        "space.json:2:1: the key 'x' is given twice, first in line 1; this one counts, as with NNI",
    ]


def test_keys_given_twice_in_a_file_of_ours_stay_errors(files: Files) -> None:
    text = "compatibility: nni\n" + V2 + "maxTrialNumber: 12\nmaxTrialNumber: !x 13\n"
    assert [error.partition(": ")[0] for error in files.errors(text)] == [
        "e.yml:15:1",
        "e.yml:16:1",
        "e.yml:16:17",
    ]


def test_a_search_space_with_comments_and_commas_too_many_is_read_as_nni_reads_it(
    files: Files,
) -> None:
    space = '{"x": {"_type": "choice", "_value": [1, 2,],}, # two\n\t\n}\n'
    (files.folder / "space.json").write_text(space)
    assert files.load(V2).search_space == {"x": {"_type": "choice", "_value": [1, 2]}}
    (files.folder / "space.json").write_text("{x: [}")
    assert "is not JSON" in files.errors(V2)[0]


def test_gpus_that_no_trial_asks_for_are_not_looked_for(files: Files) -> None:
    some = "  gpuIndices: 0,1\n  useActiveGpu: true\n"
    (there,) = files.load(V2 + some).services
    assert there.gpu_indices is None
    asked = V2.replace("trialGpuNumber: 0", "trialGpuNumber: 1")
    (there,) = files.load(asked + some).services
    assert there.gpu_indices == (0, 1)
    remote = V2.replace("  platform: local\n", "  platform: remote\n  machineList:\n")
    machines = "  - {host: one, user: u, gpuIndices: [1]}\n  - {host: two, user: u}\n"
    (there,) = files.load(remote + machines).services
    machines_there = there.machine_list  # type: ignore[attr-defined]  # of the one for ssh
    assert [one.gpu_indices for one in machines_there] == [None, None]


def test_bounds_that_are_one_number_are_that_number(files: Files) -> None:
    kinds = {
        "uniform": [1, 1],
        "loguniform": [2, 2],
        "quniform": [2, 2, 1],
        "qloguniform": [3, 3, 1],
    }
    space = {kind: {"_type": kind, "_value": value} for kind, value in kinds.items()}
    (files.folder / "space.json").write_text(json.dumps(space))
    tuner = make_builtin("Random")
    tuner.update_search_space(files.load(BUILT_IN).search_space)
    assert tuner.generate_parameters(0) == {kind: float(kinds[kind][0]) for kind in kinds}
    (files.folder / "space.json").write_text('{"n": {"_type": "randint", "_value": [1, 1]}}')
    assert "holds nothing" in files.errors(BUILT_IN)[0]
    (files.folder / "space.json").write_text(json.dumps(space))
    assert len(files.errors("compatibility: none\n" + BUILT_IN)) == 4
