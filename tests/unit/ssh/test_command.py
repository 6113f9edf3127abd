"""Commands as lines: whatever the words hold, the program gets them so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.errors import InternalError
from dispatcher.ssh.command import LAUNCHER, launch

_SHOW = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"

#: Any text without NUL, odd bytes of file names included.
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.binary(
    max_size=20
).map(lambda data: os.fsdecode(data.replace(b"\0", b"")))


def ran(line: bytes, stdin: bytes = b"", shell: str = "/bin/sh") -> tuple[bytes, bytes]:
    """What a login shell makes of it, as sshd hands it over."""
    done = subprocess.run(
        [shell, "-c", LAUNCHER], input=line + stdin, capture_output=True, timeout=240, check=True
    )
    return done.stdout, done.stderr


@given(st.lists(WORDS, min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_words_arrive(words: list[str]) -> None:
    out, _ = ran(launch([sys.executable, "-c", _SHOW, *words], {}).line)
    assert out.split(b"\0") == [os.fsencode(word) for word in words]


@given(WORDS)
@settings(max_examples=20, deadline=None)
def test_values_of_the_environment_arrive(value: str) -> None:
    program = "import os, sys; sys.stdout.buffer.write(os.environb[b'THE_VALUE'])"
    out, _ = ran(launch([sys.executable, "-c", program], {"THE_VALUE": value}).line)
    assert out == os.fsencode(value)


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "fish", "tcsh", "ksh"])
def test_any_login_shell_will_do(shell: str) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not here")
    out, _ = ran(launch(["printf", "%s", "it's !x \\n $HOME\nnext"], {}).line, b"", found)
    assert out == b"it's !x \\n $HOME\nnext"


def test_stdin_begins_after_the_line() -> None:
    assert ran(launch(["cat"], {}).line, b"  first\nlast")[0] == b"  first\nlast"


def test_the_process_is_told_by_its_mark() -> None:
    begin = launch(["sh", "-c", "echo $$"], {})
    out, err = ran(begin.line)
    assert err == begin.mark + out
    assert launch(["true"], {}).mark != begin.mark


def test_nothing_of_the_command_reaches_the_login_shell() -> None:
    assert "\\" not in LAUNCHER
    assert "!" not in LAUNCHER
    assert "\n" not in LAUNCHER


@pytest.mark.parametrize(
    "words, environment", [([], {}), (["a\0b"], {}), (["a"], {"1": ""}), (["a"], {"A": "\0"})]
)
def test_what_cannot_be_said_is_refused(words: list[str], environment: dict[str, str]) -> None:
    with pytest.raises(InternalError):
        launch(words, environment)
