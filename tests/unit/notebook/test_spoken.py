"""Hints name calls of Python, and tracebacks end at the caller's line."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

import dispatcher
from dispatcher.errors import InternalError, UserError
from dispatcher.notebook.spoken import in_python, speaks_python


@pytest.mark.parametrize(
    "text, spoken",
    [
        ("take it up again with: bequeath resume digits-k3x9qa", "experiment.start()"),
        ("or let another head take over: bequeath resume --take-over digits-k3x9qa",
         "take over: experiment.start(take_over=True)"),
        ("'bequeath status' shows how far", "'experiment.status()' shows how far"),
        ("end it with 'bequeath stop' or 'bequeath kill', then resume",
         "'experiment.stop()' or 'experiment.kill()', then"),
        ("bequeath why 3", "experiment.why()"),
        ("start one with: bequeath run FILE", "Experiment(...).run()"),
        ("(bequeath weights gc --dry-run shows what may go)",
         "(experiment.perform('weights gc', dry_run=True) shows what may go)"),
        ("bequeath resume goes on from the last state", "experiment.start() goes on from"),
        ("install bequeath again: 'pip install'", "install bequeath again: 'pip install'"),
        ("bequeath must run where Slurm's commands are", "bequeath must run where Slurm's"),
        ("bequeath hosts add gpu1", "bequeath hosts add gpu1"),
        ("", ""),
    ],
)  # fmt: skip
def test_commands_become_calls(text: str, spoken: str) -> None:
    assert spoken in in_python(text)


#: Code of ours, as far as its frames say.
OURS = """
from __future__ import annotations
from dispatcher.errors import UserError


def deep(error, levels=5):
    if levels:
        deep(error, levels - 1)
    try:
        raise KeyError("inside")
    except KeyError:
        raise error


class Speaking:
    def fail(self, error):
        'Fail.'
        deep(error)

    def run(self, function):
        'Call.'
        function()

    @classmethod
    def made(cls):
        'Fail as well.'
        deep(UserError("no", hint="bequeath status"))

    @property
    def shown(self):
        'Fail, too.'
        deep(UserError("no", hint="bequeath status"))

    def _not_public(self):
        deep(UserError("no", hint="bequeath status"))
"""
MADE_UP = str(Path(dispatcher.__file__).parent / "made_up.py")
ours: dict[str, Any] = {}
exec(compile(OURS, MADE_UP, "exec"), ours)
Speaking: Any = speaks_python(ours["Speaking"])


def test_one_frame_of_ours_is_shown() -> None:
    for call in (lambda: Speaking().fail(UserError("no", hint="bequeath status")),
                 Speaking.made, lambda: Speaking().shown):  # fmt: skip
        with pytest.raises(UserError) as raised:
            call()
        frames = traceback.extract_tb(raised.value.__traceback__)
        assert [each.name for each in frames][-1] == "call"
        assert not [each for each in frames if each.name == "deep"]
        assert raised.value.hint == "experiment.status()"
        assert "KeyError" not in "".join(traceback.format_exception(raised.value))


def test_faults_of_ours_and_of_others_keep_their_frames() -> None:
    """Mutation: a bug of ours comes without its place."""
    for error in (InternalError("broken"), ValueError("of the user")):
        with pytest.raises(type(error)) as raised:
            Speaking().fail(error)
        frames = traceback.extract_tb(raised.value.__traceback__)
        assert [each.name for each in frames][-1] == "deep"


def test_code_of_the_users_below_a_call_stays_visible() -> None:
    """Mutation: a trial of a study makes a mistake, and its line is not shown."""

    def mistake() -> None:
        ours["deep"](UserError("no", hint="bequeath status"))

    with pytest.raises(UserError) as raised:
        Speaking().run(mistake)
    names = [each.name for each in traceback.extract_tb(raised.value.__traceback__)]
    assert "mistake" in names
    assert raised.value.hint == "experiment.status()"


def test_names_and_texts_of_members_stay() -> None:
    assert Speaking.fail.__doc__ == "Fail."
    assert Speaking.fail.__name__ == "fail"
    assert isinstance(vars(Speaking)["shown"], property)
    assert vars(Speaking)["shown"].__doc__ == "Fail, too."
    with pytest.raises(UserError) as raised:
        Speaking()._not_public()
    assert raised.value.hint == "bequeath status"
