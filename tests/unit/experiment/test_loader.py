"""Each kind of mistake: exact place, exact words."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.errors import ExperimentFileError, UserError
from dispatcher.experiment import (
    ExperimentFileErrors,
    build_experiment,
    load_experiment,
    parse_experiment,
)
from dispatcher.experiment import yaml_text as source_module

from .conftest import GOOD, OURS

Errors = Callable[..., list[str]]


def test_a_good_file_is_named_after_itself(tmp_path: Path) -> None:
    file = tmp_path / "digits.yml"
    file.write_text(GOOD)
    config = load_experiment(file)
    assert config.experiment_name == "digits"
    assert config.trial_code_directory == tmp_path


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "e.yml"
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load_experiment(file).trial_concurrency == 2


# What is appended to a good file of six lines, and what is said about it.
APPENDED = {
    "maxTrialNumer: 3": "e.yml:7:1: unknown key 'maxTrialNumer'; did you mean 'maxTrialNumber'?",
    "max_trial_numer: 3": (
        "e.yml:7:1: unknown key 'max_trial_numer'; did you mean 'maxTrialNumber'?"
    ),
    "reuseMode: forked": (
        "e.yml:7:1: unknown key 'reuseMode'\n  'reuseMode' belongs below 'trainingService'"
    ),
    "trainingService: {lookahead: 3}": (
        "e.yml:7:19: unknown key 'lookahead' in 'trainingService'\n"
        "  'lookahead' belongs at the top level of the file"
    ),
    "channel: {zzz: 3}": (
        "e.yml:7:11: unknown key 'zzz' in 'channel'\n"
        "  keys here are beyondThisMachine, host, port, transport"
    ),
    "trial_concurrency: 3": (
        "e.yml:7:1: 'trial_concurrency' and 'trialConcurrency' are the same key\n"
        "  keep one of the two spellings"
    ),
    "maxTrialNumber: many": (
        "e.yml:7:17: 'maxTrialNumber' must be a whole number, not the text 'many'"
    ),
    "maxTrialNumber: '3'": (
        "e.yml:7:17: 'maxTrialNumber' must be a whole number, not the text '3'\n"
        "  write 3 without quotes"
    ),
    "maxTrialNumber: true": (
        "e.yml:7:17: 'maxTrialNumber' must be a whole number, not the switch true"
    ),
    "maxTrialNumber: 0": "e.yml:7:17: 'maxTrialNumber' must be at least 1, not 0",
    "maxTrialNumber: 1.5": (
        "e.yml:7:17: 'maxTrialNumber' must be a whole number, not the number 1.5"
    ),
    "max_trial_number: [1]": "e.yml:7:19: 'maxTrialNumber' must be a whole number, not a list",
    "experimentName: 2024": (
        "e.yml:7:17: 'experimentName' must be text, not the number 2024\n  put it in quotes: '2024'"
    ),
    "experimentName: ''": "e.yml:7:17: 'experimentName' must not be empty",
    "multiThread: maybe": ("e.yml:7:14: 'multiThread' must be true or false, not the text 'maybe'"),
    "maxTrialDuration: 10 parsecs": (
        "e.yml:7:19: 'maxTrialDuration' has the unknown unit 'parsecs' in '10 parsecs'; "
        "units are ms, s, m, h, d, w"
    ),
    "maxTrialDuration: 0s": "e.yml:7:19: 'maxTrialDuration' must be longer than nothing",
    "maxLogSize: 3q": (
        "e.yml:7:13: 'maxLogSize' has the unknown unit 'q' in '3q'; units are b, kb, mb, gb, tb"
    ),
    "onStall: explode": (
        "e.yml:7:10: 'onStall' must be 'fail', 'grow' or 'wait', not the text 'explode'"
    ),
    "onTrialWithoutResult: .nan": (
        "e.yml:7:23: 'onTrialWithoutResult' must be 'ignore', 'fail' or the number to take "
        "instead, not nan"
    ),
    "leases:\n  alive: 5s\n  suspect: 4s": (
        "e.yml:8:3: 'leases' must grow from alive to suspect to lost, not 5, 4, 120 seconds"
    ),
    "weightKeys: {save: p, restore: p}": (
        "e.yml:7:32: 'weightKeys' names 'p' twice: save and restore need keys of their own"
    ),
    "retention: {keep: best}": ("e.yml:7:19: 'retention' needs a count\n  write 'keep: {best: 5}'"),
    "retention: {best: 0}": "e.yml:7:12: 'retention.count' must be at least 1, not 0",
    "weightsRoot: s9://bucket/w": (
        "e.yml:7:14: 'weightsRoot' has an unknown protocol: s9:// (did you mean s3://? known are "
        "s3, s3a, sftp, ssh, gs, gcs, az, abfs, oci, oss, tos, hdfs, webhdfs, webdav, smb, ftp, "
        "memory, file, local)"
    ),
    "channel: {port: 70000}": "e.yml:7:17: 'channel.port' must be at most 65535, not 70000",
    "trialFunction: a:b": (
        "e.yml:7:16: 'trialCommand' and 'trialFunction' exclude each other\n  keep one of the two"
    ),
    "trialFunction: a.b": (
        "e.yml:7:16: 'trialFunction' must be written as 'module:function', not 'a.b'"
    ),
    "trainingService: {reuseMode: inProcess}": (
        "e.yml:7:30: 'reuseMode: inProcess' runs functions, and this trial is a command\n"
        "  write 'trialFunction' instead of 'trialCommand', or another reuseMode"
    ),
    "trainingService: {platform: mesos, worker: {}}": (
        "e.yml:7:29: the platform 'mesos' is not installed\n"
        f"  installed are {OURS}; others come with packages that bring them"
    ),
    "trainingService:\n- platform: local\n- platform: local": (
        "e.yml:8:1: 'trainingService' names this machine twice\n"
        "  give one local service the slots of both"
    ),
    "trainingService:\n- {platform: local}\n- {platform: ssh, machineList: [{ip: a, Slots: 0}]}": (
        "e.yml:9:48: 'trainingService[1].machineList[0].slots' must be at least 1, not 0"
    ),
    "trainingService: {platform: remote, machineList: []}": (
        "e.yml:7:50: 'trainingService' names no machine\n  write '- host: …'"
    ),
    "trainingService: {platform: ssh, machineList: [{host: a, passwd: geheim}]}": (
        "e.yml:7:66: 'trainingService.machineList[0].password' must be a reference, 'env:NAME' or "
        "'file:PATH': secrets stand in no experiment file"
    ),
    "trainingService: {platform: ssh, machineList: [{host: a, trialGpuNumber: 1}]}": (
        "e.yml:7:58: unknown key 'trialGpuNumber' in 'machineList'\n"
        "  it says what a trial takes: write it at the top level or below 'trainingService'"
    ),
    "trainingService: {platform: ssh, machineList: [{host: a, gpuIndices: '0,0'}]}": (
        "e.yml:7:70: 'trainingService.machineList[0].gpuIndices' names GPU 0 twice"
    ),
    "trainingService: {gpuIndices: [0, -1]}": (
        "e.yml:7:31: 'trainingService.gpuIndices' must hold numbers of GPUs, counted from 0, not -1"
    ),
    "trainingService: {cost: -1}": (
        "e.yml:7:25: 'trainingService.cost' must not be negative, as -1 is"
    ),
    "trainingService: {resources: {licence: 0}}": (
        "e.yml:7:30: 'trainingService.resources' has 'licence', which must be more than nothing"
    ),
    "trialResources: {GPUs: 1}": (
        "e.yml:7:17: 'trialResources' has the name 'GPUs'; that is what 'trialGpuNumber' counts"
    ),
    "trialResources: [licence]": (
        "e.yml:7:17: 'trialResources' must be names with their amounts, as in {licence: 1}, not "
        "['licence']"
    ),
    "trialCpuNumber: 0": "e.yml:7:17: 'trialCpuNumber' must be more than nothing",
    "trialMemorySize: 1 elephant": (
        "e.yml:7:18: 'trialMemorySize' has the unknown unit 'elephant' in '1 elephant'; units are "
        "b, kb, mb, gb, tb"
    ),
    "gpuIndices: 0": (
        "e.yml:7:1: unknown key 'gpuIndices'\n"
        "  it says what a machine has: write it below 'trainingService'"
    ),
    "priority: 0.5": "e.yml:7:11: 'priority' must be a whole number, not the number 0.5",
    "trainingService: {platform: ssh, machineList: [{host: a, jump: {host: b, prot: 1}}]}": (
        "e.yml:7:74: unknown key 'prot' in 'jump'; did you mean 'port'?"
    ),
    "trainingService: {platform: ssh, machineList: [{host: a, weightsRoot: mnt}]}": (
        "e.yml:7:71: 'trainingService.machineList[0].weightsRoot' must be a path from the root of "
        "that machine, not 'mnt'"
    ),
    "trainingService: {platform: ssh, machineList: [{host: a, sshKeyFile: nope}]}": (
        "e.yml:7:70: 'trainingService.machineList[0].sshKeyFile' does not exist: nope"
    ),
    "trialEnvironment: {A: 1.5}": (
        "e.yml:7:23: 'trialEnvironment.A' must be text, not the number 1.5\n"
        "  put it in quotes: '1.5'"
    ),
    "trialEnvironment: {A=B: x}": (
        "e.yml:7:25: 'trialEnvironment.A=B' has the name 'A=B', which no environment variable "
        "can have"
    ),
    "searchSpaceFile: s.json": (
        "e.yml:7:18: 'searchSpace' and 'searchSpaceFile' exclude each other\n  keep one of the two"
    ),
    "optimizeMode: best": (
        "e.yml:7:15: 'optimizeMode' must be 'maximize' or 'minimize', not the text 'best'"
    ),
    "trialCodeDirectory: nope": (
        "e.yml:7:21: 'trialCodeDirectory' does not exist: nope\n"
        "  relative paths count from the experiment file's folder"
    ),
    "weightsReadRoots: [., nope]": (
        "e.yml:7:23: 'weightsReadRoots[1]' does not exist: nope\n"
        "  relative paths count from the experiment file's folder"
    ),
    "weightsReadRoots: [.]\ntrainingService:\n  platform: ssh\n  machineList:\n"
    "    - {host: gpu1, weightsReadRoots: [/a, /b]}": (
        "e.yml:11:38: 'trainingService.machineList[0].weightsReadRoots' names 2 folders, and "
        "'weightsReadRoots' of the experiment has 1\n"
        "  name the place of each of them on this machine, in the same order"
    ),
    "trainingService: {platform: ssh, machineList: [{host: a, weightsReadRoots: [b]}]}": (
        "e.yml:7:77: 'trainingService.machineList[0].weightsReadRoots[0]' must be a path from the "
        "root of that machine, not 'b'"
    ),
    "weightsRoot: e.yml": "e.yml:7:14: 'weightsRoot' is not a folder: e.yml",
    "trialGpuNumber: 1.5": (
        "e.yml:7:17: 'trialGpuNumber' must be a share of one GPU, up to 1, or a whole number of "
        "them, not 1.5"
    ),
    "trialGpuNumber: 'two'": "e.yml:7:17: 'trialGpuNumber' must be a number, not 'two'",
    "trialGpuNumber: 1\ntrainingService: {trialGpuNumber: 2}": (
        "e.yml:8:35: 'trialGpuNumber' is given twice, as 1.0 and 2.0\n"
        "  give 'trialGpuNumber' once, at the top level"
    ),
    "maxExecDuration: 1h": (
        "e.yml:7:1: unknown key 'maxExecDuration'\n  write 'maxExperimentDuration'"
    ),
    "assessor: {name: Medianstep}": (
        "e.yml:7:18: 'assessor.name' names no built-in assessor: 'Medianstep'; did you mean "
        "'Medianstop'?\n  there are Medianstop, Curvefitting, Threshold, OptunaPruner; or bring "
        "your own with 'className: module:Assessor'"
    ),
    "assessor: {name: Curvefitting, classArgs: {epochnum: 9}}": (
        "e.yml:7:54: 'assessor.classArgs.epochnum' does not fit: CurvefittingAssessor takes no "
        "argument 'epochnum'\n  Did you mean 'epoch_num'?"
    ),
    "trialConcurrency: 3": (
        "e.yml:7:1: the key 'trialConcurrency' is given twice, first in line 6\n"
        "  remove one of the two"
    ),
    "a: b: c": (
        "e.yml:7:5: is not YAML: mapping values are not allowed here\n"
        "  put a text that holds ': ' in quotes, and look at the indentation"
    ),
    "1: 2": "e.yml:7:1: the key '1' is not text\n  put it in quotes",
    "x: !!python/name:os.system 1": (
        "e.yml:7:4: the tag '!!python/name:os.system' is not allowed here\n"
        "  write plain text, numbers, lists and mappings"
    ),
    "seed: -1": "e.yml:7:7: 'seed' must be at least 0, not -1",
}


@pytest.mark.parametrize("appended", APPENDED)
def test_one_mistake_gives_one_error(errors_of: Errors, appended: str) -> None:
    assert errors_of(GOOD + appended + "\n") == [APPENDED[appended]]


# What replaces one line of the good file.
REPLACED = {
    ("trialConcurrency: 2", ""): "e.yml:1:1: the experiment needs the key 'trialConcurrency'",
    ("trialCommand: python3 -c 'print(1)'", ""): (
        "e.yml:1:1: the experiment needs 'trialCommand' or 'trialFunction'\n"
        "  write e.g. 'trialCommand: python trial.py' or 'trialFunction: trial:main'"
    ),
    ("  name: Random", "  {}"): (
        "e.yml:4:3: 'tuner' needs 'name' (a built-in one) or 'className' (your own)\n"
        "  write e.g. 'name: Random' or 'className: my_module:MyClass'"
    ),
    ("  name: Random", "  name: Randm"): (
        "e.yml:4:9: 'tuner.name' names no built-in tuner: 'Randm'; did you mean 'Random'?\n"
        "  there are Random, GridSearch, ASHA, BOHB, ENAS, Hyperband, MorphingEvolution, "
        "NetworkMorphism, PBT, RegularizedEvolution, SPOS, Schedule, Optuna, TPE, CMA-ES, GP, QMC, "
        "NSGA-II, NSGA-III; or bring your own with 'className: module:Tuner'"
    ),
    ("  name: Random", "  name: PPO"): (
        "e.yml:4:9: 'name' is NNI's PPO, which is not here\n"
        "  use 'RegularizedEvolution', or bring a controller of your own"
    ),
    ("  name: Random", "  name: PBT\n  classArgs: {populaton_size: 4}"): (
        "e.yml:5:31: 'tuner.classArgs.populaton_size' does not fit: PBTTuner takes no argument "
        "'populaton_size'\n  Did you mean 'population_size'?"
    ),
    ("  name: Random", "  name: cma_es"): (
        "e.yml:2:3: 'searchSpace' does not suit CMA-ES: CMA-ES needs two numbers or more that "
        "every trial has, and this search space has 1: choices, and what lies below them, are "
        "drawn at random"
    ),
    ("  name: Random", "  name: Evolution\n  classArgs: {populaton_size: 4}"): (
        "e.yml:5:14: 'classArgs' cannot be honoured: NNI's Evolution takes no argument "
        "'populaton_size'\n  it takes optimize_mode, population_size"
    ),
    ("  name: Random", "  builtinTunerName: Random\n  name: Random"): (
        "e.yml:4:3: unknown key 'builtinTunerName' in 'tuner'\n  write 'name'"
    ),
    ("  name: Random", "  name: Random\n  class_arg: {}"): (
        "e.yml:5:3: unknown key 'class_arg' in 'tuner'; did you mean 'classArgs'?"
    ),
    ("  name: Random", "  name: Random\n  className: a:B"): (
        "e.yml:5:14: 'tuner' has both 'name' (built in) and 'className' (your own)\n"
        "  keep one of the two"
    ),
    ("  name: Random", "  className: Mine"): (
        "e.yml:4:14: 'tuner' has the className 'Mine' without a module\n"
        "  write 'module:Mine', or add 'file' with the path of the Python file"
    ),
    ("  name: Random", "  className: not/a:Class"): (
        "e.yml:4:14: 'tuner' has the className 'not/a:Class', which names no class\n"
        "  write it as 'module:Class'"
    ),
    ("  name: Random", "  file: nope.py\n  className: Mine"): (
        "e.yml:4:9: 'tuner.file' does not exist: nope.py\n"
        "  relative paths count from the experiment file's folder"
    ),
    ("  name: Random", "  name: Random\n  classArgs: {optimize_mode: .inf}"): (
        "e.yml:5:14: 'tuner.classArgs' holds optimize_mode, which must be finite, not inf"
    ),
    (
        "  name: Random",
        "  {name: Random, classArgs: {optimize_mode: minimize}}\noptimizeMode: maximize",
    ): (
        "e.yml:5:15: 'optimizeMode' is maximize, but the tuner's is minimize\n"
        "  keep one of 'optimizeMode' and 'tuner.classArgs.optimize_mode'"
    ),
    ("_value: [0.0001, 0.1]", "_value: [0, 0.1]"): (
        "e.yml:2:36: 'searchSpace.lr._value[0]' must be above 0 for loguniform, not 0"
    ),
    ("_value: [0.0001, 0.1]", "_value: [0.1]"): (
        "e.yml:2:35: 'searchSpace.lr._value' has 1 values, loguniform needs 2\n"
        "  loguniform: [low, high]"
    ),
    ("_type: loguniform", "_type: logunifrom"): (
        "e.yml:2:15: 'searchSpace.lr._type' is unknown: 'logunifrom'; did you mean 'loguniform'?\n"
        "  types are choice, randint, uniform, quniform, loguniform, qloguniform, normal, "
        "qnormal, lognormal, qlognormal"
    ),
    ("  lr: {_type: loguniform, _value: [0.0001, 0.1]}", "  {}"): (
        "e.yml:2:3: 'searchSpace' is empty: a built-in tuner has nothing to choose from\n"
        "  write e.g. 'lr: loguniform(0.0001, 0.1)' or 'lr: {_type: loguniform, _value: "
        "[0.0001, 0.1]}'"
    ),
}


@pytest.mark.parametrize("line,instead", REPLACED)
def test_a_mistake_in_place_of_a_line(errors_of: Errors, line: str, instead: str) -> None:
    assert line in GOOD
    assert errors_of(GOOD.replace(line, instead)) == [REPLACED[line, instead]]


@pytest.mark.parametrize(
    "text,said",
    [
        ("", "e.yml:1:1: an experiment file is empty\n  write 'key: value' lines"),
        ("# only words\n", "e.yml:1:1: an experiment file is empty\n  write 'key: value' lines"),
        (
            "- 1\n",
            "e.yml:1:1: an experiment file must be a mapping, not a list\n"
            "  write 'key: value' lines",
        ),
        (
            "a: 1\n\tb: 2\n",
            "e.yml:2:1: is not YAML: while scanning for the next token, found character '\\t' "
            "that cannot start any token\n  indent with blanks; YAML does not allow tabs",
        ),
        (
            "a: 1\n---\nb: 2\n",
            "e.yml:2:1: is not YAML: expected a single document in the stream, but found "
            "another document\n  keep one document; remove the line '---'",
        ),
        ("a: &a [*a]\n", "e.yml:1:4: an alias that contains itself"),
        ("[" * 3000, "e.yml:1:101: is nested deeper than 100 levels"),
        ("a: " + "{b: " * 120, "e.yml:1:400: is nested deeper than 100 levels"),
        ("- " * 120 + "a\n", "e.yml:1:201: is nested deeper than 100 levels"),
        (
            "".join(f"{' ' * level}a:\n" for level in range(120)),
            "e.yml:101:102: is nested deeper than 100 levels",
        ),
        (
            "%YAML 1.3\n---\na: 1\n",
            "e.yml:1:1: is not YAML: found a version of YAML that nobody reads: there are 1.1 and "
            "1.2",
        ),
        ('a: "\\UFFFFFFFF"\n', "e.yml:1:7: is not YAML: found a number that stands for nothing"),
        ('a: "\\U00110000"\n', "e.yml:1:7: is not YAML: found a number that stands for nothing"),
        ("a: !!bool maybe\n", "e.yml:1:4: not true or false: 'maybe'"),
        ("a: !!int ''\n", "e.yml:1:4: not a number: ''"),
        ("a: 0x" + "f" * 5000 + "\n", "e.yml:1:4: a whole number of more than 300 digits"),
        (f"a: {'9' * 400}\n", "e.yml:1:4: a whole number of more than 300 digits"),
        ("a: *b\n", "e.yml:1:4: is not YAML: found undefined alias 'b'"),
    ],
)
def test_texts_that_are_no_experiment(errors_of: Errors, text: str, said: str) -> None:
    """Mutations: each makes a traceback of the parser's, or seconds of waiting for it."""
    assert errors_of(text) == [said]


def test_nested_aliases_are_not_followed_for_ever(errors_of: Errors) -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    for i in range(1, 12):
        lines.append(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]")
    assert any("more than 200,000 values" in error for error in errors_of("\n".join(lines)))


@pytest.mark.filterwarnings("error")
def test_an_anchor_may_be_given_anew(errors_of: Errors) -> None:
    """Mutation: the parser warns in its own words, between ours."""
    (error,) = errors_of(GOOD + "maxTrialNumber: &a 1\nseed: &a x\n")
    assert "'seed' must be" in error


def test_no_more_is_read_than_a_file_may_hold(
    errors_of: Errors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: all of it is read before it is counted, and there is no memory left."""
    monkeypatch.setattr(source_module, "MOST_TOKENS", 1000)
    (error,) = errors_of("a:\n" + "- 1\n" * 5000)
    assert re.fullmatch(r"e\.yml:50\d:\d: more than 200,000 values", error)


def test_aliases_nest_as_deeply_as_brackets_may(errors_of: Errors) -> None:
    """Mutation: the bound of the brackets is the only one, and the interpreter's is met."""
    lines = ["l0: &l0 [x]", *(f"l{i}: &l{i} [*l{i - 1}]" for i in range(1, 400))]
    errors = errors_of("\n".join(lines))
    assert "e.yml:1:5: is nested deeper than 100 levels" in errors


def test_all_mistakes_come_in_one_run_in_the_order_of_the_file(errors_of: Errors) -> None:
    text = (
        "searchSpace:\n  a: {_type: uniform, _value: [3, 2]}\n  b: {_type: choice, _value: []}\n"
        "tuner: {name: Randm}\ntrialCommand: [1]\ntrialConcurrency: two\n"
        "trialCodeDirectory: nope\nseeed: 1\n"
    )
    assert [error.partition("\n")[0] for error in errors_of(text)] == [
        "e.yml:2:31: 'searchSpace.a._value' is contradictory: 3 to 2 holds nothing",
        "e.yml:3:30: 'searchSpace.b._value' is empty: a choice needs at least one option",
        "e.yml:4:15: 'tuner.name' names no built-in tuner: 'Randm'; did you mean 'Random'?",
        "e.yml:5:15: 'trialCommand' must be text, not a list",
        "e.yml:6:19: 'trialConcurrency' must be a whole number, not the text 'two'",
        "e.yml:7:21: 'trialCodeDirectory' does not exist: nope",
        "e.yml:8:1: unknown key 'seeed'; did you mean 'seed'?",
    ]


def test_a_long_list_of_mistakes_is_cut(tmp_path: Path) -> None:
    text = GOOD + "".join(f"unknown{i}: 1\n" for i in range(25))
    with pytest.raises(ExperimentFileErrors) as refused:
        parse_experiment(text, "e.yml", tmp_path)
    assert len(refused.value.errors) == 25
    assert str(refused.value).endswith("\n… and 5 more")


def test_the_error_is_a_users_and_one_alone_reads_like_itself(tmp_path: Path) -> None:
    with pytest.raises(ExperimentFileError) as refused:
        parse_experiment(GOOD + "seeed: 1\n", "e.yml", tmp_path)
    error = refused.value
    assert isinstance(error, UserError)
    assert error.exit_code == 3
    assert (error.where, error.message) == (
        "e.yml:7:1",
        "unknown key 'seeed'; did you mean 'seed'?",
    )


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "there.yaml").write_text(GOOD)
    (tmp_path / "bytes.yml").write_bytes(b"a: \xff")
    for name, said in {
        "there.yml": "does not exist: {}; did you mean 'there.yaml'?",
        "bytes.yml": "is not UTF-8 text, see byte 3",
        ".": "is a folder: {}",
    }.items():
        file = tmp_path / name
        with pytest.raises(ExperimentFileErrors) as refused:
            load_experiment(file)
        assert refused.value.message == said.format(file)
        assert refused.value.where == str(file)


def test_anchors_and_merges_are_followed_with_places_of_their_own(errors_of: Errors) -> None:
    text = GOOD.replace(
        "tuner:\n", "x-base: &base {classArgs: {seed: 1}, nam: x}\ntuner:\n  <<: *base\n"
    )
    assert errors_of(text) == ["e.yml:3:38: unknown key 'nam' in 'tuner'; did you mean 'name'?"]


def test_a_mapping_that_merges_another_keeps_its_own_place(errors_of: Errors) -> None:
    text = GOOD.replace("tuner:\n", "x-base: &base {classArgs: {}}\ntuner:\n  <<: *base\n")
    (error,) = errors_of(text.replace("  name: Random\n", ""))
    assert error.startswith("e.yml:5:3: 'tuner' needs 'name'")


class TestSearchSpaceFile:
    REST = "tuner: {name: Random}\ntrialCommand: python3 -V\ntrialConcurrency: 1\n"

    def test_json_and_yaml_are_read(self, tmp_path: Path) -> None:
        space = {"x": {"_type": "choice", "_value": [1, "\t"]}}
        (tmp_path / "s.json").write_text('{\t"x": {"_type":\t"choice", "_value": [1, "\\t"]}}')
        (tmp_path / "s.yml").write_text('x: {_type: choice, _value: [1, "\\t"]}')
        for name in ("s.json", "s.yml"):
            text = self.REST + f"searchSpaceFile: {name}\n"
            assert parse_experiment(text, "e.yml", tmp_path).search_space == space

    def test_errors_are_placed_in_that_file(self, errors_of: Errors, tmp_path: Path) -> None:
        (tmp_path / "s.json").write_text('{\n "x": {"_type": "uniform",\n\t"_value": [1, "a"]}\n}')
        assert errors_of(self.REST + "searchSpaceFile: s.json\n") == [
            "s.json:3:16: 'searchSpace.x._value[1]' must be a number, not the text 'a'"
        ]

    def test_broken_json(self, errors_of: Errors, tmp_path: Path) -> None:
        (tmp_path / "s.json").write_text('{"x": 1,}')
        (error,) = errors_of(self.REST + "searchSpaceFile: s.json\n")
        assert error.startswith("s.json:1:")
        assert "is not JSON: " in error

    @pytest.mark.parametrize("levels", [120, 100_000])
    def test_levels_beyond_reason(self, errors_of: Errors, tmp_path: Path, levels: int) -> None:
        """Mutation: the place is the beginning of the file."""
        (tmp_path / "s.json").write_text(f'{{\n"x": {"[" * levels}{"]" * levels}}}')
        (error,) = errors_of(self.REST + "searchSpaceFile: s.json\n")
        assert error == "s.json:2:105: is nested deeper than 100 levels"

    def test_a_number_that_is_too_long(self, errors_of: Errors, tmp_path: Path) -> None:
        """Mutation: the interpreter's own error, and a traceback."""
        (tmp_path / "s.json").write_text(f'{{"x": {"9" * 5000}}}')
        (error,) = errors_of(self.REST + "searchSpaceFile: s.json\n")
        assert error.startswith("s.json:1:1: has a number that cannot be read: Exceeds the limit")

    def test_keys_given_twice(self, errors_of: Errors, tmp_path: Path) -> None:
        (tmp_path / "s.json").write_text('{"x": 1,\n "x": 2}')
        (error,) = errors_of(self.REST + "searchSpaceFile: s.json\n")
        assert error.startswith("s.json:2:2: the key 'x' is given twice, first in line 1")

    def test_missing(self, errors_of: Errors) -> None:
        assert errors_of(self.REST + "search_space_file: s.json\n") == [
            "e.yml:4:20: 'searchSpaceFile' does not exist: s.json"
        ]


def test_a_mapping_from_python_gets_the_same_words(good: dict[str, object]) -> None:
    with pytest.raises(ExperimentFileErrors) as refused:
        build_experiment(good | {"maxTrialNumer": 3, "seed": "x", 1: 2})  # type: ignore[operator]
    assert sorted(str(error) for error in refused.value.errors) == [
        "experiment: 1: the key 1 is not text",
        "experiment: maxTrialNumer: unknown key 'maxTrialNumer'; did you mean 'maxTrialNumber'?",
        "experiment: seed: 'seed' must be a whole number, not the text 'x'",
    ]


def test_half_a_character_is_no_crash(good: dict[str, object]) -> None:
    with pytest.raises(ExperimentFileErrors, match="half a character") as refused:
        build_experiment(good | {"searchSpace": {"a\ud800": 3}})
    assert "both of its escapes" in refused.value.hint
