"""``trial shell`` on this machine: where a trial runs, with what it has."""

from __future__ import annotations

import sys

from tests.integration.cli.conftest import Place
from tests.support.typing_at import Terminal


def test_a_shell_where_a_trial_runs_and_ran(place: Place) -> None:
    """Mutation: the secret goes into shells."""
    place.environment["SHELL"] = "/bin/sh"
    place("create", "experiment.yml")
    place.wait_until_running()
    shown = place("trial", "shell", "0", "--", "sh", "-c", "pwd; env").splitlines()
    variables = dict(line.partition("=")[::2] for line in shown)
    assert shown[0] == str(place.folder)
    assert variables["BEQUEATH_EXPERIMENT"] == place.experiment.name
    assert "BEQUEATH_SESSION" not in variables

    words = [sys.executable, "-m", "dispatcher.cli", "trial", "shell", "0"]
    at = Terminal(words, place.environment, cwd=place.folder)
    try:
        at.until("attempt 0.1 on this machine")
        at.type("echo sum=$((40 + 2)) $(ls train.py)\n")
        at.until("sum=42 train.py")
        at.type("exit 5\n")
        assert at.end() == 5
    finally:
        at.close()

    place.go()
    place.wait_until(
        lambda: place.json("status")["experiment"]["status"] == "completed", "it is completed"
    )
    ended = place("trial", "shell", "0", "--", "sh", "-c", "echo $BEQUEATH_EXPERIMENT; exit 0")
    assert ended == f"{place.experiment.name}\n", "put together, since no process has it any more"
    assert place("trial", "shell", "0", "--", "python", "-c", "import trial_runtime") == ""
