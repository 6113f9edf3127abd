"""Command line, Python and routes reach the same operations, and no command does without them."""

from __future__ import annotations

import fcntl
import importlib
import inspect
import json
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dispatcher import Experiment, queries
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.json_shapes import EXPERIMENT_KEYS, SHAPES, TRIAL_KEYS
from dispatcher.cli.lazy_group import load
from dispatcher.cli.trial.table import MOST_ROWS
from dispatcher.errors import DispatcherError, ExperimentNotFound, SeveralErrors, UserError
from dispatcher.operations import operation as operation_module
from dispatcher.operations.arguments import ExportWeights, ListTrials, StopExperiment
from dispatcher.operations.faults import FAULTS, fault_of, problem_of
from dispatcher.operations.operation import (
    Context,
    Operation,
    Scope,
    Subject,
    arguments_of,
    perform,
)
from dispatcher.operations.spelling import command_line
from dispatcher.operations.table import OPERATIONS, operation
from dispatcher.plots.kinds import KINDS
from tests.unit.cli.conftest import Shell
from tests.unit.cli.test_help import ALL

COMMANDS = {" ".join(path): entry for path, entry in ALL}

#: Commands about experiments that answer with no document, or take what only this machine has.
NO_ROW = {
    "run": "takes a file of this machine, and leads the experiment itself",
    "create": "takes a file of this machine",
    "lead": "takes a file of this machine, and leads the experiment itself",
    "trial log": "a stream of bytes",
    "trial shell": "a terminal",
    "trial fetch": "writes into a folder of this machine",
    "experiment replay": "for those who mend bequeath: its text needs records of the core",
    "tuner replay": "runs a tuner's code here",
    "sink": "feeds a tracker for as long as that takes",
    "tensorboard": "runs a program of this machine",
    "systemd-unit": "a file for this machine",
    "web": "serves all of them",
}

#: About no experiment that is there: tuners, files, machines; and groups of commands.
OF_NO_EXPERIMENT = re.compile(
    r"(tuner|config|nfs|hosts|kubernetes)( .*)?|validate|convert|doctor|completion"
    r"|plot|trial|experiment|weights"
)

#: NNI's commands have NNI's layouts: they change experiments by the commands above, and read them
#: by the handle on which operations stand, too.
OF_NNI = re.compile(r"nni( .*)?")

#: What is typed after each command.
WORDS: dict[str, tuple[str, ...]] = {
    "experiment list": (),
    "trial show": ("3", "-e"),
    "trial tensors": ("3", "-e"),
    "experiment at": ("1790000000", "-e"),
    "trial kill": ("3", "-e"),
    "trial submit": ('{"x": 1}', "-e"),
    "trial note": ("3", "text", "-e"),
    "trial tag": ("3", "good", "-e"),
    "trial star": ("3", "-e"),
    "experiment note": ("text", "-e"),
    "experiment tag": ("good", "-e"),
    "trial note remove": ("3", "--remove", "1", "-e"),
    "experiment note remove": ("--remove", "1", "-e"),
    "leaderboard": (),
    "trial files": ("3", "-e"),
    "trial inputs": ("3", "-e"),
    "infer": ("3", "-e"),
    "weights export": ("3", "-e"),
    "weights pin": ("3", "-e"),
    "weights unpin": ("3", "-e"),
    "experiment update": ("lookahead", "3", "-e"),
}

EACH = [(name, verb) for name, row in OPERATIONS.items() for verb in row.verbs]


class Recorded(DispatcherError):
    """Ends a command where it asks."""


@pytest.fixture
def performed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The operations that were asked for; none of them is carried out."""
    seen: list[tuple[str, Any]] = []

    def record(row: Operation[Any, Any], context: Context, given: Any = None, **about: Any) -> Any:
        seen.append((row.name, about.get("experiment")))
        raise Recorded("recorded")

    monkeypatch.setattr(operation_module, "perform", record)
    return seen


@pytest.mark.parametrize("name,verb", EACH)
def test_each_command_asks_by_its_operation(
    name: str, verb: str, folder: Path, performed: list[tuple[str, Any]]
) -> None:
    """Mutation: a command that calls the handle, the store or a head by itself."""
    words = [*verb.split(), *WORDS.get(name, WORDS.get(verb, ()))]
    if verb in ("experiment import", "experiment backup"):
        (folder.parent / "rows").write_text('[{"parameter": {"x": 1}, "value": 2}]')
        target = str(folder.parent / "rows")
        words += [target, str(folder)] if verb == "experiment import" else [str(folder), target]
    elif verb not in ("experiment list", "leaderboard"):
        words.append(str(folder))
    words += {
        "weights plan": ["--dry-run"],
        "weights gc": ["--yes"],
        "take over": ["--take-over", "--background"],
        "resume": ["--background"],
        "experiment csv": ["--format", "csv"],
        "top": ["--json"],
        "experiment delete": ["--yes"],
        "kill": ["--yes"],
        "trial unstar": ["--off"],
        "experiment unstar": ["--off"],
        **{f"plot {kind}": ["--json"] for kind in KINDS},
    }.get(name, [])
    with (folder / "head.lock").open("w") as lock:
        if name == "top":
            fcntl.flock(lock, fcntl.LOCK_EX)
        done = Shell()(*words)
    assert (done.code, done.err.strip()) == (1, "recorded"), done
    assert [one[0] for one in performed] == [name]


NEEDED: dict[str, Any] = {
    "rows": [],
    "parameters": {},
    "trials": [1],
    "number": 1,
    "time": 1.5,
    "request": {},
}


@pytest.mark.parametrize("name", [*OPERATIONS])
def test_python_reaches_each_operation(
    name: str, folder: Path, performed: list[tuple[str, Any]]
) -> None:
    """Mutation: an operation that needs an argument which Python cannot give."""
    row = OPERATIONS[name]
    needed = {
        field.encode_name: NEEDED.get(field.name, "text")
        for field in msgspec.structs.fields(row.arguments)
        if field.required
    }
    trial = 3 if row.subject is Subject.TRIAL else None
    with pytest.raises(Recorded):
        Experiment.open(folder).perform(name, trial=trial, **needed)
    assert performed == [(name, str(folder))]
    kind, _, method = row.python.partition(".")
    assert kind == "Experiment"
    assert callable(getattr(Experiment, method))


SAMPLES: dict[str, list[dict[str, Any]]] = {
    "experiment list": [{"everywhere": True}],
    "best": [{"limit": 3}],
    "lineage": [{"root": 2}],
    "plot": [
        {"kind": "parallel", "parameters": ["lr", "it's"], "many": 7, "seed": 2},
        {"kind": "lineage"},
        {"kind": "contour", "x": "lr", "y": "a b", "metric": "loss", "mode": "minimize"},
    ],
    "plot slice": [{"parameters": ["lr"], "many": 3, "seed": 4}],
    "plot contour": [{"x": "$(date)", "metric": "loss"}],
    "plot pareto": [{"objectives": ["a:minimize", "b"]}],
    "plot hypervolume": [{"objectives": ["a:minimize", "b"], "reference": ["a:1.5", "b:-1"]}],
    "plot timeline": [{"worker": "ssh/gpu 1"}],
    "plot slots": [{"last": 86_400.0}],
    "stop": [{"wait": True}, {"wait": False, "drain": True, "grace_s": 1.5}],
    "experiment update": [{"key": "lookahead", "value": "3"}],
    "experiment verify": [{"rebuild": True}],
    "experiment backup": [{"destination": "/tmp/it's here", "weights": True}],
    "trial ls": [
        {"state": ["running", "timed out"], "failed": True, "live": True, "parent": 3, "limit": 2},
        {"where": "lr<0.01 and outcome!='timed out'", "sort": "value", "reverse": True},
    ],
    "trial note": [{"text": "it's $(date)\nbetter"}, {"text": "--remove 1"}],
    "trial note remove": [{"number": 2}],
    "trial tag": [{"add": ["good", "dataset:x"], "remove": ["bad", "worse"]}, {"remove": ["bad"]}],
    "experiment note": [{"text": "-1 is \u0022odd\u0022"}],
    "experiment note remove": [{"number": 2}],
    "experiment tag": [{"add": ["good"]}],
    "leaderboard": [
        {"group": "tag", "dataset": "cifar 10", "tuner": "TPE", "tag": "good", "name": "a b"},
        {"starred": True, "everywhere": True},
    ],
    "trial files": [{"attempt": 2, "links": True}],
    "trial tensors": [{"limit": 3}],
    "experiment at": [{"time": 1790000000.5, "limit": 3}],
    "trial kill": [{"trials": [3, 4]}],
    "trial submit": [{"parameters": {"x": 1, "it's": ["$HOME", "`a`", "a b"]}}],
    "weights plan": [{"keep": "best:3", "keep_versions": 2}],
    "weights gc": [{"keep": "best:3", "keep_versions": 2}],
    "weights versions": [{"store": "supernet"}],
    "weights pin": [{"note": "for the paper; $(date)"}],
    "weights export": [{"file": "out.safetensors", "key": "model"}],
    "infer": [{"request": {"x": 1, "it's": ["$HOME", "`a`"]}, "timeout_s": 2.5}],
}


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "experiment import"])
def test_the_command_of_an_operation_does_just_that(
    name: str, folder: Path, performed: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: an option of another name, a text that a shell would read, or none at all."""
    row = OPERATIONS[name]
    asked: list[tuple[str, Any, Any, Any]] = []

    def record(row: Operation[Any, Any], context: Context, given: Any = None, **about: Any) -> Any:
        named = None if row.subject is Subject.MACHINE else about["experiment"]
        asked.append((row.name, given or row.arguments(), named, about.get("trial")))
        raise Recorded("recorded")

    monkeypatch.setattr(operation_module, "perform", record)
    monkeypatch.setattr("os.isatty", lambda _: True)
    for values in [{}, *SAMPLES.get(name, [])] if name not in NEEDS_ARGUMENTS else SAMPLES[name]:
        given = arguments_of(row, values)
        trial = 3 if row.subject is Subject.TRIAL else None
        typed = shlex.split(command_line(row, given, experiment=folder.name, trial=trial))
        assert typed[0] == "bequeath"
        asked.clear()
        with (folder / "head.lock").open("w") as lock:
            if name == "top":
                fcntl.flock(lock, fcntl.LOCK_EX)
            done = Shell()(*typed[1:])
        assert done.err.strip() == "recorded", typed
        ((called, arguments, experiment, number),) = asked
        assert (called, number) == (name, trial)
        assert experiment in (None, folder.name, str(folder))
        if isinstance(arguments, StopExperiment):
            arguments = msgspec.structs.replace(arguments, reason="")
        if isinstance(arguments, ListTrials) and given.limit is None:
            # A table has a bound, and asks for one row more to see whether there are more.
            assert arguments.limit == MOST_ROWS + 1
            arguments = msgspec.structs.replace(arguments, limit=None)
        if isinstance(arguments, ExportWeights) or arguments != given:
            arguments = msgspec.convert(msgspec.to_builtins(arguments), row.arguments)
        assert arguments == given


NEEDS_ARGUMENTS = {
    "experiment update", "experiment backup", "trial kill", "trial submit", "weights export",
    "trial note", "trial note remove", "trial tag", "experiment note", "experiment note remove",
    "experiment tag",
    "experiment at",
    "infer",
}  # fmt: skip


def test_what_only_a_file_holds_has_no_command() -> None:
    row = OPERATIONS["experiment import"]
    assert command_line(row, arguments_of(row, {"rows": [{}]}), experiment="digits-1") == ""


def test_a_picture_of_a_part_is_a_command_of_its_own() -> None:
    row = OPERATIONS["plot"]
    given = arguments_of(row, {"kind": "lineage", "root": 4})
    expected = "bequeath lineage --png digits-1.png digits-1 --trial 4"
    assert command_line(row, given, experiment="digits-1") == expected


def test_each_command_about_experiments_is_an_operation_or_says_why_not() -> None:
    """Mutation: a new command beside the table."""
    verbs = {verb for row in OPERATIONS.values() for verb in row.verbs}
    assert verbs <= set(COMMANDS)
    beside = {name for name in set(COMMANDS) - verbs if name in NO_ROW or not is_apart(name)}
    assert beside == set(NO_ROW)
    assert all(NO_ROW.values())


def is_apart(command: str) -> bool:
    return bool(OF_NO_EXPERIMENT.fullmatch(command) or OF_NNI.fullmatch(command))


@pytest.mark.parametrize("row", OPERATIONS.values(), ids=lambda row: row.name)
def test_rows_are_whole(row: Operation[Any, Any]) -> None:
    assert bool(row.route) is not bool(row.why_not)
    assert row.summary.endswith(".")
    module, _, function = row.call.partition(":")
    act = getattr(importlib.import_module(f"dispatcher.operations.{module}"), function)
    assert len(inspect.signature(act).parameters) == 2
    assert row.arguments.__struct_config__.forbid_unknown_fields
    assert row.arguments.__struct_config__.frozen
    if row.route:
        assert ("{trial}" in row.path) is (row.subject is Subject.TRIAL)
        assert ("{experiment}" in row.path) is (row.subject is not Subject.MACHINE)
        assert (row.method == "GET") is (row.scope is not Scope.CHANGE)


def test_no_two_operations_have_one_route() -> None:
    routes = [row.route for row in OPERATIONS.values() if row.route]
    assert len(set(routes)) == len(routes)


@pytest.mark.parametrize("name,verb", EACH)
def test_commands_print_the_answers_fields(name: str, verb: str) -> None:
    """Mutation: a field of an answer that the reference does not promise, or another order."""
    row = OPERATIONS[name]
    if row.answer in (bytes, str) or verb in ("experiment export", "experiment show"):
        return  # pictures, tables, and what is a document without ``--json``
    options = {
        option
        for each in load(verb.split()[-1], COMMANDS[verb]).params
        for option in getattr(each, "opts", ())
    }
    assert "--json" in options
    text = (
        SHAPES[verb].replace(" With `--background` ", "") if verb != "resume" else SHAPES["create"]
    )
    braces = re.search(r"\{([^}]*)\}", text)
    assert braces is not None
    fields = [each.encode_name for each in msgspec.structs.fields(row.answer)]
    assert re.split(r",\s*", braces[1]) == fields


def test_the_reference_names_all_keys_of_records() -> None:
    for keys, kind in (
        (TRIAL_KEYS, queries.TrialSummary),
        (EXPERIMENT_KEYS, queries.ExperimentSummary),
    ):
        assert keys.split(", ") == [*kind.__dataclass_fields__]


@pytest.mark.parametrize(
    "name,values,part",
    [
        ("trial ls", {"live": "yes"}, "Expected `bool`"),
        ("trial ls", {"limit": 0}, ">= 1"),
        ("experiment at", {"time": float("nan")}, ">= 0"),
        ("experiment at", {"time": 1e300}, "<= 1"),
        ("trial ls", {"folder": "/"}, "unknown field"),
        ("stop", {"grace_s": -1}, ">= 0"),
        ("stop", {"grace_s": float("nan")}, ">= 0"),
        ("stop", {"reason": "x" * 3000}, "length"),
        ("trial submit", {}, "missing required field"),
        ("trial kill", {"trials": [-1]}, ">= 0"),
        ("trial kill", {"trials": [1] * 10_001}, "length"),
    ],
)
def test_arguments_from_outside_are_checked(name: str, values: dict[str, Any], part: str) -> None:
    with pytest.raises(UserError, match=re.escape(part)) as refused:
        arguments_of(operation(name), values)
    assert refused.value.hint.startswith("its arguments: ")


def test_what_does_not_exist_is_named() -> None:
    with pytest.raises(UserError, match="there is no operation 'trial list'") as refused:
        operation("trial list")
    assert "trial ls" in refused.value.hint
    with pytest.raises(UserError, match="is about a trial, and none is named"):
        perform(operation("weights pin"), Context())


def test_a_change_asks_before_it_removes(folder: Path) -> None:
    """Mutation: the folder goes before the answer."""

    def no(question: str) -> None:
        assert question == f"Delete {folder} with everything in it?"
        raise UserError("no")

    row = operation("experiment delete")
    with pytest.raises(UserError, match="no"):
        perform(row, Context(confirm=no), experiment=folder.name)
    assert folder.is_dir()
    answer = perform(row, Context(), experiment=folder.name)
    assert answer.deleted == str(folder)
    assert not folder.exists()


def test_each_kind_of_error_has_its_word_and_its_numbers() -> None:
    """Mutation: a class of errors with an exit code that its kind does not say."""
    assert len({kind.kind for kind in FAULTS.values()}) == len(FAULTS)
    for base, kind in FAULTS.items():
        assert kind.exit_code == base.exit_code
        assert ExitCode(kind.exit_code)
        assert 400 <= kind.status < 600
        assert kind.meaning
    for error in subclasses(DispatcherError):
        assert FAULTS[next(base for base in error.__mro__ if base in FAULTS)].exit_code == (
            error.exit_code
        )


def subclasses(kind: type[DispatcherError]) -> list[type[DispatcherError]]:
    direct = [one for one in kind.__subclasses__() if one.__module__.startswith("dispatcher.")]
    return [*direct, *(below for one in direct for below in subclasses(one))]


def test_a_problem_has_all_parts_of_its_error() -> None:
    error = ExperimentNotFound("there is none", hint="name another", where="here")
    problem = problem_of(error)
    assert json.loads(msgspec.json.encode(problem)) == {
        "kind": "no-experiment",
        "message": "there is none",
        "hint": "name another",
        "where": "here",
        "exit_code": 3,
        "errors": [],
    }
    several = problem_of(SeveralErrors([error, UserError("and that")]))
    assert [one.message for one in several.errors] == ["there is none", "and that"]
    assert fault_of(error).status == 404
