"""``metrics``, ``parametersAs`` and parameters in commands: what is refused, and what bash gets."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dispatcher.experiment import ExperimentConfig, ExperimentFileErrors, parse_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.experiment.templates import bash_text, placed_names
from dispatcher.wiring.programs import command_of, program_of
from trial_runtime.agent.config import MetricsSpec, ProgramSpec
from trial_runtime.parameter_text import flat, text_of, variable_of

FILE = """\
tuner: {name: Random}
searchSpace:
  lr: {_type: uniform, _value: [0, 1]}
  layer: {_type: choice, _value: [{_name: conv, size: {_type: randint, _value: [1, 5]}}, {_name: fc}]}
trialConcurrency: 2
"""  # noqa: E501 - one entry of a space


def read(more: str, folder: Path) -> ExperimentConfig:
    return parse_experiment(f"{FILE}{more}\n", "e.yml", folder)


@pytest.mark.parametrize(
    "more, place, wrong",
    [
        ("trialFunction: a:b\nmetrics: {stdout: true, objective: x}", "7:10", "is for programs"),
        ("trialFunction: a:b\nparametersAs: file", "7:15", "is for programs, and this trial is a"),
        ("trialCommand: 'true'\nmetrics: {objective: x}", "7:10", "says nothing of where"),
        ("trialCommand: 'true'\nmetrics: {stdout: true}", "7:10", "needs the key 'objective'"),
        (
            "trialCommand: 'true'\nmetrics: {stdout: true, file: m, objective: x}",
            "7:31",
            "has both 'stdout' and 'file'",
        ),
        (
            "trialCommand: 'true'\nmetrics: {file: /tmp/m, objective: x}",
            "7:17",
            "must be a path below the trial's own working directory",
        ),
        (
            "trialCommand: 'true'\nmetrics: {file: a/../../m, objective: x}",
            "7:17",
            "must be a path below",
        ),
        (
            "trialCommand: 'true'\nmetrics: {stdout: true, format: json, objective: x}",
            "7:33",
            "'format: json', which is one of a file",
        ),
        (
            "trialCommand: 'true'\nmetrics: {hypertune: true, filters: ['(a)(b)'], objective: x}",
            "7:37",
            "'filters', which find values in lines of text",
        ),
        (
            "trialCommand: 'true'\nmetrics: {stdout: true, filters: ['(a'], objective: x}",
            "7:35",
            "which cannot be read: missing )",
        ),
        (
            "trialCommand: 'true'\nmetrics: {stdout: true, filters: ['(a)b'], objective: x}",
            "7:35",
            "needs two groups",
        ),
        (
            "trialCommand: 'true'\nmetrics: {stdout: true, objective: step}",
            "7:36",
            "is 'step', a key of each report",
        ),
        (
            "trialCommand: 'true'\nmetrics: {stdout: true, objective: x, also: [y, y]}",
            "7:45",
            "names 'y' twice",
        ),
        (
            "trialCommand: 'true'\nmetrics: {stdout: true, objective: x, strategies: {y: min}}",
            "7:55",
            "a strategy for 'y', which is neither",
        ),
        (
            "trialCommand: 'true'\nmetrics: {stdout: true, objective: x, strategies: {x: best}}",
            "7:55",
            "must be 'latest', 'min' or 'max'",
        ),
        ('trialCommand: "a\\0b"', "6:15", "holds a NUL character, which no command can"),
        ("trialCommand: 'true'\nparametersAs: [files]", "7:16", "must be 'arguments'"),
        ("trialCommand: 'true'\nparametersAs: [{}]", "7:16", "must be 'arguments'"),
        (
            "trialCommand: a ${trialParameters.lrr}",
            "6:15",
            "names ${trialParameters.lrr}, and the search space has no 'lrr'",
        ),
        (
            "trialCommand: 'true'\ntrialEnvironment: {A: '1', B: '${trialParameters.lrr}'}",
            "7:31",
            "names ${trialParameters.lrr}",
        ),
        (
            "trialCommand: sh -c 'a ${trialParameters.lr}'",
            "6:15",
            "in single quotes, where bash takes each letter",
        ),
        (
            "trialCommand: 'true'\ncompatibility: nni\nparametersAs: file",
            "8:15",
            "this one is written for NNI",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, more: str, place: str, wrong: str) -> None:
    with pytest.raises(ExperimentFileErrors) as raised:
        read(more, tmp_path)
    (error,) = [each for each in raised.value.errors if wrong in each.message]
    assert error.where == f"e.yml:{place}"


def test_two_parameters_are_not_one_variable(tmp_path: Path) -> None:
    space = "a-b: {_type: choice, _value: [1]}\n  a_b: {_type: choice, _value: [1]}"
    text = FILE.replace("lr: {_type: uniform, _value: [0, 1]}", space)
    command = "trialCommand: 'true'\nparametersAs: "
    parse_experiment(f"{text}{command}arguments\n", "e.yml", tmp_path)
    with pytest.raises(ExperimentFileErrors, match="would be one variable"):
        parse_experiment(f"{text}{command}environment\n", "e.yml", tmp_path)


def test_a_tuner_of_ones_own_may_add_parameters(tmp_path: Path) -> None:
    """As those that hand on weights do. Mutation: names are checked whatever the tuner is."""
    more = "trialCommand: bash ${trialParameters.save_path}"
    text = FILE.replace("Random", "RegularizedEvolution")
    assert parse_experiment(f"{text}{more}\n", "e.yml", tmp_path).trial_command is not None


def test_a_plain_file_has_no_program(tmp_path: Path) -> None:
    config = read("trialCommand: bash train.sh '$x' ${y}", tmp_path)
    assert program_of(config) is None
    assert command_of(config) == "bash train.sh '$x' ${y}"


def test_an_agent_gets_what_the_file_says(tmp_path: Path) -> None:
    config = read(
        """\
trialCommand: bash train --lr=${trialParameters.lr} --size "${trialParameters.size}"
trialEnvironment: {LAYER: "${trialParameters.layer}"}
parametersAs: Arguments
metrics: {stdout: yes, objective: acc, also: [loss], strategies: {acc: Max}, filters: ['(a)(b)']}
""",
        tmp_path,
    )
    assert program_of(config) == ProgramSpec(
        parameters=("arguments",),
        templates=("lr", "size"),
        optional=("size",),
        metrics=MetricsSpec(
            "acc",
            also=("loss",),
            strategies={"acc": "max"},
            streams=("stdout",),
            filters=("(a)(b)",),
        ),
    )
    assert command_of(config) == (
        'bash train --lr="${BEQUEATH_PARAMETER_lr}" --size "${BEQUEATH_PARAMETER_size}" "$@"'
    )
    assert from_json(to_json(config), "again") == config


def test_arguments_go_where_the_command_says(tmp_path: Path) -> None:
    config = read('trialCommand: bash "$@" > log\nparametersAs: [arguments, file]', tmp_path)
    assert command_of(config) == 'bash "$@" > log'


#: Around a parameter in a command, and what is around it in the word that bash makes of it.
AROUND = {
    "{}": ("", ""),
    '"{}"': ("", ""),
    "a{}b": ("a", "b"),
    '"$x{}"': ("$", ""),
    '\\"{}': ('"', ""),
    "'q'{}": ("q", ""),
    '"\'{}"': ("'", ""),
}
VALUES = st.text(alphabet=st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)


@given(st.lists(st.tuples(VALUES, st.sampled_from(list(AROUND))), min_size=20, max_size=40))
@example([("'; exit 3; '", "{}"), ("$(exit 3) * \\", '"{}"'), ("`exit 3`\n&", "a{}b")])
@settings(max_examples=10, deadline=None)
def test_bash_makes_one_word_of_any_value(cases: list[tuple[str, str]]) -> None:
    """Mutation: a value is put into the text, quoted or not."""
    words = [around.format(f"${{trialParameters.{n}}}") for n, (_, around) in enumerate(cases)]
    text = bash_text("printf '%s\\0' " + " ".join(words), with_arguments=False)
    values = {variable_of(str(number)): value for number, (value, _) in enumerate(cases)}
    done = subprocess.run(
        ["bash", "-c", text],
        env={"PATH": os.environ["PATH"], "x": "$", **values},
        capture_output=True,
        check=True,
    )
    wanted = [f"{AROUND[around][0]}{value}{AROUND[around][1]}\0" for value, around in cases]
    assert done.stdout.decode() == "".join(wanted)
    assert done.stderr == b""


def test_quotes_are_seen_as_bash_sees_them() -> None:
    text = r"""a '${trialParameters.a}' \'${trialParameters.b} "\"${trialParameters.c}" """
    assert [each.quotes for each in placed_names(text)] == ["'", "", '"']


def test_texts_of_values_are_those_of_a_command_line() -> None:
    values = [1e-05, -0.0, 2.0**60, True, None, {"a": 1}, "x"]
    assert [text_of(value) for value in values] == [
        "1e-05",
        "0",
        "1.152921504606847e+18",
        "true",
        "null",
        '{"a": 1}',
        "x",
    ]
    assert flat([1, 2]) == {}
    nested = {"a": {"_name": "b", "c": {"_name": "d", "a": 1}}, "c": 2}
    assert flat(nested) == {"a": "b", "c": "2"}
