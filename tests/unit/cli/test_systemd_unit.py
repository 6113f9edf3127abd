"""The unit that leads an experiment: what is in it, and that nobody's name becomes a setting."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dispatcher.cli.exit_codes import MEANINGS, ExitCode
from dispatcher.cli.run import configured
from dispatcher.cli.systemd_unit import NO_RESTART, ON_PURPOSE, UnitValues, unit_text
from dispatcher.experiments.handle import ExperimentHandle
from tests.unit.cli.conftest import Shell

_FILE = """
experimentName: mnist
experimentWorkingDirectory: {base}
trialCommand: "true"
trialConcurrency: 2
trialStopGrace: 7s
tuner: {{name: Random}}
searchSpace: {{x: {{_type: uniform, _value: [0, 1]}}}}
"""

NASTY = 'a b%h"$HOME'


def _values(folder: Path, **changes: object) -> UnitValues:
    values = {
        "name": "mnist",
        "python": sys.executable,
        "stop_grace_s": 10.0,
        "head_grace_s": 120.0,
        "environment": {"PATH": "/usr/bin:/bin", "LANG": 'x"y\\z%n', "SECRET": "never"},
        **changes,
    }
    return UnitValues(folder, **values)  # type: ignore[arg-type]


def _read(text: str) -> configparser.ConfigParser:
    """Sections and keys; of a key that comes several times the last one."""
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters="=")
    parser.optionxform = str  # type: ignore[assignment]
    parser.read_string(text)
    return parser


def test_the_head_is_restarted_alone_and_not_for_nothing(tmp_path: Path) -> None:
    """Mutation: ``KillMode`` is left to systemd, which would end the agent and all trials."""
    service = _read(unit_text(_values(tmp_path)))["Service"]
    assert service["KillMode"] == "process"
    assert service["Restart"] == "on-failure"
    assert service["OOMPolicy"] == "continue"
    assert service["TimeoutStopSec"] == "70s"
    assert service["RestartPreventExitStatus"].split() == [str(c) for c in NO_RESTART]
    assert set(ON_PURPOSE) <= set(NO_RESTART)
    assert set(NO_RESTART) == set(MEANINGS) - {
        ExitCode.OK,
        ExitCode.GENERAL,
        ExitCode.ENVIRONMENT,
        ExitCode.PROTOCOL,
        ExitCode.INTERNAL,
    }


def test_the_next_head_comes_before_the_agent_leaves(tmp_path: Path) -> None:
    short = _read(unit_text(_values(tmp_path, head_grace_s=2.0)))["Service"]
    assert short["RestartSec"] == "500ms"


def test_no_name_becomes_a_setting_and_no_variable_is_told(tmp_path: Path) -> None:
    """Mutation: a name is written as it is."""
    text = unit_text(_values(tmp_path / NASTY, name="x\n[Service]\nExecStart=/bin/evil\r%n"))
    parser = _read(text)
    assert parser["Unit"]["Description"].startswith("bequeath experiment x [Service] ExecStart=")
    assert "%n" not in parser["Unit"]["Description"].replace("%%", "")
    assert text.count("\nExecStart=") == 1
    assert parser["Service"]["ExecStart"].endswith('b%%h\\"$$HOME"')
    assert "never" not in text
    assert _values(tmp_path / NASTY).file_name == "bequeath-a-b-h--HOME.service"


def test_systemd_takes_it(tmp_path: Path) -> None:
    """Where it is installed; it complains of unknown keys and of values it cannot read."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")
    folder = tmp_path / NASTY
    folder.mkdir()
    values = _values(folder)
    unit = tmp_path / values.file_name
    unit.write_text(unit_text(values))
    said = subprocess.run(
        [analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=240
    )
    assert (said.returncode, said.stderr) == (0, "")
    unit.write_text(unit_text(values).replace("KillMode=process", "KillMode=nobody"))
    said = subprocess.run(
        [analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=240
    )
    assert "kill mode" in said.stderr, "it would not tell"


def test_the_command_prints_it(bequeath: Shell, home: Path, tmp_path: Path) -> None:
    """By the experiment's folder, which is all that a service knows, wherever it lies."""
    file = tmp_path / "experiment.yml"
    file.write_text(_FILE.format(base=tmp_path / "elsewhere"))
    folder = ExperimentHandle.create(configured(file, [], None)).folder
    home.rmdir()
    (tmp_path / "state" / "bequeath" / "folders").unlink()
    said = bequeath("systemd-unit", folder)
    assert said.code == 0, said.err
    service = _read(said.out)["Service"]
    assert str(folder) in service["ExecStart"]
    assert service["TimeoutStopSec"] == "67s"
    assert f"systemctl --user enable --now bequeath-{folder.name}.service" in said.err
    document = bequeath("systemd-unit", folder, "--json").json()
    assert document == {"name": f"bequeath-{folder.name}.service", "unit": said.out}
