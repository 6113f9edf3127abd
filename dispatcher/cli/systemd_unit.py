"""``bequeath systemd-unit``: a unit that leads an experiment and restarts its head."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dispatcher.cli.arguments import Experiment, Folder, Json, find_handle
from dispatcher.terminal.console import note, pass_on, print_json


def systemd_unit(
    experiment: Experiment = None, folder: Folder = None, as_json: Json = False
) -> None:
    """Print a systemd user unit that runs `bequeath resume` for an experiment.

    It starts the head again when it was killed, lost its disk for a while, or the machine was
    started anew; not when the experiment is over, was stopped, failed, or is led by another
    head. Trials go on while the head is away. docs/service.md says how to install it.
    """

    handle = find_handle(experiment, folder, "use")
    config = handle.config()
    values = UnitValues(
        handle.folder.resolve(),
        handle.name,
        sys.executable,
        stop_grace_s=config.trial_stop_grace,
        head_grace_s=config.head_grace,
        environment={**os.environ, "PYTHONPATH": _python_path()},
    )
    text = unit_text(values)
    if as_json:
        print_json({"name": values.file_name, "unit": text})
        return
    pass_on(text.rstrip("\n") + "\n")
    note(f"save it as ~/.config/systemd/user/{values.file_name}, then:")
    note(f"systemctl --user daemon-reload && systemctl --user enable --now {values.file_name}")


def _python_path() -> str:
    """Return the unit's ``PYTHONPATH``, with this package's folder if that is not installed."""
    ours = Path(__file__).resolve().parents[2]
    before = os.environ.get("PYTHONPATH", "")
    if "site-packages" in ours.parts:
        return before
    return os.pathsep.join(filter(None, (str(ours), before)))


#: Exit codes after which another head would do no better: a wrong command line, an experiment that
#: failed by its user's code or is led by another head, one that was stopped or taken over.
NO_RESTART = (2, 3, 6, 7, 130)

#: Those of them for an end that was asked for.
ON_PURPOSE = (6, 7, 130)

#: Seconds between two heads; below the shortest grace that agents usually have.
RESTART_S = 5.0

#: Seconds to wind up beside the grace of trials: tuner, agent, journal.
WIND_UP_S = 60.0

#: Variables of the user's environment that trials or bequeath need.
KEPT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "TMPDIR",
    "BEQUEATH_HOME",
)


#: The settings of a head that are the same for all experiments.
_LIMITS = (
    "# A trial that runs out of memory is a matter between it and its agent.",
    "OOMPolicy=continue",
    "# A thread for each request that waits: ten thousand are no mistake.",
    "TasksMax=infinity",
    "# Trials that use sudo, or another program with privileges of its own, need the first",
    "# two of these removed. Sockets lie in the folder for temporary files, so there is no",
    "# PrivateTmp.",
    "NoNewPrivileges=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "SystemCallArchitectures=native",
)


@dataclass(frozen=True, slots=True)
class UnitValues:
    """The values of a unit that differ between experiments. Durations in seconds."""

    folder: Path
    name: str
    python: str
    stop_grace_s: float
    head_grace_s: float
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """The unit's file name; systemd allows few characters."""
        return f"bequeath-{re.sub(r'[^A-Za-z0-9_.-]', '-', self.folder.name)}.service"


def unit_text(values: UnitValues) -> str:
    """Return the unit. All values of the user's are quoted: no name or path becomes a setting."""
    lines = [
        f"# {values.file_name}: printed by 'bequeath systemd-unit'.",
        "[Unit]",
        f"Description=bequeath experiment {_plain(values.name)} ({_plain(values.folder.name)})",
        "# A head that fails again and again waits for somebody to look.",
        "StartLimitIntervalSec=1h",
        "StartLimitBurst=20",
        "",
        "[Service]",
        *_command(values),
        f"TimeoutStopSec={values.stop_grace_s + WIND_UP_S:.0f}s",
        "Restart=on-failure",
        f"RestartSec={1000 * max(0.1, min(RESTART_S, values.head_grace_s / 4)):.0f}ms",
        "# Failed by its own code, led by another head, stopped or taken over: 'docs/cli.md'.",
        f"RestartPreventExitStatus={_numbers(NO_RESTART)}",
        f"SuccessExitStatus={_numbers(ON_PURPOSE)}",
        *_LIMITS,
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines) + "\n"


def _command(values: UnitValues) -> list[str]:
    """Return the lines that say what is run, where, and with which environment."""
    folder = str(values.folder)
    command = (values.python, "-P", "-m", "dispatcher.cli", "resume", folder)
    variables = {key: values.environment[key] for key in KEPT if values.environment.get(key)}
    variables |= {k: v for k, v in values.environment.items() if k == "PYTHONPATH" and v}
    return [
        "Type=exec",
        "ExecStart=" + " ".join(_argument(word) for word in command),
        f"WorkingDirectory={_plain(folder)}",
        *(f"Environment={_assignment(key, value)}" for key, value in variables.items()),
        "# Secrets that the experiment file names by 'env:' belong there, in a file of mode 0600.",
        f"EnvironmentFile=-{_plain(folder)}/service.env",
        "# The head alone is stopped, and ends the others in order. If it dies, the agent and its",
        "# trials live on, and the next head takes them up again.",
        "KillMode=process",
    ]


def _numbers(codes: tuple[int, ...]) -> str:
    return " ".join(str(int(code)) for code in codes)


def _plain(text: str) -> str:
    """Return a text as a whole value: one line, without specifiers."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", text).replace("%", "%%")


def _argument(text: str) -> str:
    """Return one argument of a command: quoted, and without variables."""
    return _quoted(text).replace("$", "$$")


def _assignment(key: str, value: str) -> str:
    return _quoted(f"{key}={value}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{_plain(escaped)}"'
