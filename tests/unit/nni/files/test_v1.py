"""Files of v1: each key honoured, or refused by name at its own place."""

from __future__ import annotations

import pytest

from dispatcher.experiment.references import resolve_reference
from dispatcher.platforms.ssh.section import SshServiceConfig
from tests.unit.nni.files.conftest import OLD_SPACE, V1, Files


def test_a_v1_file_is_read_as_it_is(files: Files) -> None:
    (files.folder / "space.json").write_text(OLD_SPACE)
    config = files.load(V1)
    assert config.experiment_name == "old"
    assert config.trial_concurrency == 2
    assert config.max_experiment_duration == 3600
    assert config.max_trial_number == 10
    assert config.trial_command == "python3 train.py"
    assert config.trial_code_directory == files.folder / "code"
    assert config.trial_gpu_number == 0
    assert config.tuner.name == "Random"
    # What NNI's code counts on.
    assert config.for_nni
    assert not config.keeps_weights
    assert config.multi_thread is False
    assert config.trial_retries == 0
    assert config.limits.max_metric_size == 1_000_000
    # A randint of v0.7 and before has its upper bound alone.
    assert config.search_space["n"]["_value"] == [0, 9]


def test_multi_thread_and_a_class_of_ones_own(files: Files) -> None:
    own = "  codeDir: code\n  classFileName: waves.py\n  className: Waves\n  classArgs: {size: 3}\n"
    config = files.load(V1.replace("  builtinTunerName: Random\n", own) + "multiThread: true\n")
    assert config.multi_thread is True
    assert config.tuner.file == files.folder / "code" / "waves.py"
    assert config.tuner.class_name == "Waves"
    assert config.tuner.class_args == {"size": 3}


def test_empty_values_are_none_and_a_list_of_machines_is_left_alone(files: Files) -> None:
    text = V1.replace("gpuNum: 0", "gpuNum:") + "assessor:\nmachineList:\n  - ip:\n"
    config = files.load(text)
    assert config.trial_gpu_number is None
    assert len(config.services) == 1


def test_gpus_go_where_ours_are(files: Files) -> None:
    local = "localConfig:\n  gpuIndices: 0,1\n  maxTrialNumPerGpu: 2\n  useActiveGpu: true\n"
    config = files.load(V1.replace("gpuNum: 0", "gpuNum: 1") + local)
    (service,) = config.services
    assert service.gpu_indices == (0, 1)
    assert service.max_trial_number_per_gpu == 2
    assert service.use_active_gpu is True
    assert config.trial_gpu_number == 1


REMOTE = """\
machineList:
  - ip: 10.1.1.1
    username: bob
    passwd: hunter2-and-more
    port: 2222
  - ip: 10.1.1.2
    username: eve
    sshKeyPath: key
    pythonPath: /opt/python/bin
remoteConfig:
  reuse: true
"""


def test_remote_machines_and_passwords_in_clear_text(files: Files) -> None:
    (files.folder / "key").write_text("k")
    remarks: list[str] = []
    text = V1.replace("Platform: local", "Platform: remote") + REMOTE
    config = files.load(text, remarks)
    (service,) = config.services
    assert isinstance(service, SshServiceConfig)
    first, second = service.machine_list
    assert (first.host, first.user, first.port) == ("10.1.1.1", "bob", 2222)
    assert first.password is not None
    assert "hunter2" not in config.model_dump_json()  # nowhere but in the user's own file
    assert resolve_reference(first.password) == "hunter2-and-more"
    assert second.key_file == files.folder / "key"
    assert second.python == "/opt/python/bin/python3"
    assert sum("clear text" in text for text in remarks) == 1
    files.write("machineList: []\n")
    with pytest.raises(ValueError, match="not there any more"):
        resolve_reference(first.password)


# What is changed in the good file, and what is said about it.
WRONG = {
    ("useAnnotation: false", "useAnnotation: true"): (
        "e.yml:8:16: 'useAnnotation' takes the search space from the code, and the file has one\n"
        "  keep one of the two"
    ),
    ("authorName: somebody", "multiPhase: true"): (
        "e.yml:1:1: 'multiPhase' cannot be honoured\n"
        "  have each phase proposed as a trial of its own: 'Multi-phase' in docs/from-nni.md"
    ),
    ("maxTrialNum: 10", "maxTrialNum: many"): (
        "e.yml:5:14: 'maxTrialNum' must be a whole number, not the text 'many'"
    ),
    ("maxTrialNum: 10", "maxTrialNumer: 10"): (
        "e.yml:5:1: unknown key 'maxTrialNumer'; did you mean 'maxTrialNumber'?"
    ),
    ("maxExecDuration: 1h", "maxExecDuration: 1 fortnight"): (
        "e.yml:4:18: 'maxExecDuration' has the unknown unit 'fortnight' in '1 fortnight'; units "
        "are ms, s, m, h, d, w"
    ),
    ("  command: python3 train.py", "  command: python3 trian.py"): None,
    ("  gpuNum: 0", "  nasMode: enas_mode"): (
        "e.yml:14:12: 'nasMode' is 'enas_mode', which trains one network for all architectures in "
        "one trial\n"
        "  there is 'classic_mode'; ENAS and SPOS are tuners here ('bequeath tuner list')"
    ),
    ("  gpuNum: 0", "  gpunum: 0"): (
        "e.yml:14:3: 'gpunum' is no key of 'trial'\n  did you mean 'gpuNum'?"
    ),
    ("searchSpacePath: space.json", "searchSpacePath: nowhere.json"): None,
    ("Name: Random", "Name: PPOTuner"): (
        "e.yml:10:21: 'builtinTunerName' is NNI's PPO, which is not here\n"
        "  use 'RegularizedEvolution', or bring a controller of your own"
    ),
    ("  builtinTunerName: Random", "  builtinTunerName: Random\n  classArgs: {sed: 1}"): (
        "e.yml:11:14: 'classArgs' cannot be honoured: NNI's Random takes no argument 'sed'\n"
        "  it takes optimize_mode, seed"
    ),
    (
        "  builtinTunerName: Random",
        "  builtinTunerName: Anneal\n"
        "  classArgs: {parallel_optimize: true, constant_liar_type: max}",
    ): (
        "e.yml:11:14: 'classArgs' cannot be honoured: the argument 'constant_liar_type' can only "
        "have NNI's default, 'min', as TPE has nothing like it: Optuna has one kind of lie\n"
        "  remove 'constant_liar_type', or bring your own tuner"
    ),
}


@pytest.mark.parametrize("before,after", WRONG)
def test_what_cannot_be_honoured_is_refused_at_its_place(
    files: Files, before: str, after: str
) -> None:
    assert before in V1
    errors = files.errors(V1.replace(before, after))
    expected = WRONG[before, after]
    if expected is not None:
        assert errors == [expected]
        return
    (error,) = errors
    key = {"  command": "trial.command", "searchSp": "searchSpacePath"}[before[:9].rstrip("Paeht")]
    assert f"'{key}'" in error


def test_an_argument_that_nni_itself_makes_no_use_of_harms_nobody(files: Files) -> None:
    idle = "  builtinTunerName: Anneal\n  classArgs: {constant_liar_type: mean}\n"
    assert files.load(V1.replace("  builtinTunerName: Random\n", idle)).tuner.class_args == {}
    misspelt = V1.replace("  builtinTunerName: Random\n", idle.replace("mean", "media"))
    (error,) = files.errors(misspelt)
    assert "'constant_liar_type' can only have NNI's default" in error


def test_an_advisor_of_ones_own_stands_where_a_tuner_would(files: Files) -> None:
    own = "advisor:\n  codeDir: code\n  classFileName: waves.py\n  className: Waves\n"
    config = files.load(V1.replace("tuner:\n  builtinTunerName: Random\n", own))
    assert config.tuner.file == files.folder / "code" / "waves.py"
    assert config.tuner.class_name == "Waves"


def test_a_weights_root_that_the_file_adds_counts(files: Files) -> None:
    remarks: list[str] = []
    config = files.load(V1 + "weightsRoot: weights\n", remarks)
    assert config.keeps_weights
    assert not any("weightsRoot" in text for text in remarks)


def test_intermediate_results_count_where_an_assessor_stops_trials(files: Files) -> None:
    keeps = V1.replace("Name: Random\n", "Name: Random\n  includeIntermediateResults: true\n")
    assert files.load(keeps).assessor is None
    assessed = files.load(keeps + "assessor: {builtinAssessorName: Medianstop}\n")
    assert assessed.assessor is not None
    assert assessed.assessor.keep_result is True


def test_code_that_stays_here_has_no_bound(files: Files) -> None:
    assert files.load(V1).limits.max_code_files > 1_000_000
    remote = V1.replace("Platform: local", "Platform: remote") + "machineList: [{ip: h}]\n"
    assert files.load(remote).limits.max_code_files == 2000


def test_what_is_wrong_inside_a_value_is_named_at_its_own_place(files: Files) -> None:
    text = V1.replace("  gpuNum: 0\n", "") + "weightKeys: {save: 3}\n"
    (error,) = files.errors(text)
    assert error.startswith("e.yml:14:20: 'weightKeys.save' must be text")


def test_what_follows_from_a_refusal_is_not_said_as_well(files: Files) -> None:
    """Mutations: a space that is in annotated code is missed, and the command of roles."""
    annotated = V1.replace("searchSpacePath: space.json\n", "")
    (only,) = files.errors(annotated.replace("useAnnotation: false", "useAnnotation: true"))
    assert "'useAnnotation' is on, and no annotation" in only
    roles = V1.replace("Platform: local", "Platform: paiYarn").replace(
        "  command: python3 train.py\n", "  worker: {replicas: 2, command: python3 train.py}\n"
    )
    (only,) = files.errors(roles)
    assert "'paiYarn'" in only


def test_keys_that_nni_took_and_that_mean_nothing_here_are_said_and_no_more(files: Files) -> None:
    remarks: list[str] = []
    of_clusters = (
        "  image: msranni/nni\n  virtualCluster: default\n  paiStoragePlugin: x\n  shmMB: 2\n"
        "  nniManagerNFSMountPath: /mnt\n  nasMode: classic_mode\n  memorySize: 1Gi\n"
    )
    config = files.load(f"{V1}{of_clusters}logCollection: none\n", remarks)
    assert config.trial_memory_size == 1 << 30
    assert "'trial.image' has no effect here: trials run in processes of the machine itself" in (
        remarks
    )
    named = [text.split("'")[1] for text in remarks if "has no effect here" in text]
    assert named == [
        "trial.image",
        "trial.virtualCluster",
        "trial.paiStoragePlugin",
        "trial.shmMB",
        "trial.nniManagerNFSMountPath",
    ]
