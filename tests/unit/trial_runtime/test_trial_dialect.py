"""Dialects of trials: what each adds to the surroundings of a process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.workers import LOCAL
from trial_runtime import facts
from trial_runtime.agent.attempt import Attempt, CannotStart
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.agent.dialects import dialect_of
from trial_runtime.endpoint import Endpoint
from trial_runtime.session_file import SESSION_VERSION, SessionFile


def config(*, nni: bool) -> AgentConfig:
    spec = TrialSpec("/code", "python trial.py", nni=nni)
    return AgentConfig(
        "w", 1, Endpoint("ipc://none"), 1, "/run", "/exp", spec, "/weights", experiment="e1"
    )


def attempt(folder: Path) -> Attempt:
    session = SessionFile(SESSION_VERSION, "", "", 3, 1, str(folder), '{"x": 1}')
    return Attempt(facts.StartAttempt(LOCAL, 3, 1, "{}"), session, "")


def test_a_trial_of_ours_is_given_nothing_more(tmp_path: Path) -> None:
    dialect, started, environment = dialect_of(config(nni=False)), attempt(tmp_path), {"A": "1"}
    dialect.furnish(started, environment)
    dialect.furnish_session(started)
    assert (dialect.shared_variables(), dialect.module_folders()) == ({}, ())
    assert environment == {"A": "1"}
    assert started.session.variables == {}
    assert list(tmp_path.iterdir()) == []


def test_a_trial_of_nni_finds_its_parameters_and_our_module(tmp_path: Path) -> None:
    dialect, started = dialect_of(config(nni=True)), attempt(tmp_path)
    dialect.furnish_session(started)
    assert started.session.variables["NNI_SYS_DIR"] == str(tmp_path)
    assert json.loads((tmp_path / "parameter.cfg").read_text())["parameters"] == {"x": 1}
    assert dialect.shared_variables()["NNI_EXP_ID"] == "e1"
    (folder,) = dialect.module_folders()
    assert (Path(folder) / "nni" / "__init__.py").exists()


def test_only_rank_0_of_several_nodes_writes_where_it_is_read(tmp_path: Path) -> None:
    """All see the attempt's folder. Mutation: NNI's library of a parameter server reports there."""
    variables: dict[str, str] = {}
    dialect_of(config(nni=True), 2).furnish(attempt(tmp_path), variables)
    assert variables["NNI_SYS_DIR"] == variables["NNI_OUTPUT_DIR"] == str(tmp_path / "rank2")
    assert json.loads((tmp_path / "rank2/parameter.cfg").read_text())["parameters"] == {"x": 1}
    assert not (tmp_path / "parameter.cfg").exists()


def test_a_folder_that_cannot_be_written_to_keeps_the_attempt_from_starting(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match="cannot lay the parameters down"):
        dialect_of(config(nni=True)).furnish(attempt(tmp_path / "file"), {})
