"""What a trial printed, shown and not obeyed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dispatcher.attempt_files import log_stream
from dispatcher.cli.trial import log as trial_log
from dispatcher.platforms.files import LocalFiles, Whereabouts
from tests.unit.cli.conftest import Shell
from tests.unit.queries.evolution import evolve, make_folder


@pytest.fixture
def output(home: Path) -> Path:
    """The folder of what trial 0 printed."""
    folder = make_folder(home)
    evolve(folder, 2)
    path = folder / "trials" / "0" / "1"
    path.mkdir(parents=True)
    return path


def test_escapes_are_shown_and_progress_bars_end(output: Path, bequeath: Shell) -> None:
    (output / "stdout").write_bytes(b"\x1b[31mred\x1b[0m\n10%\r100%\nno end \xff")
    assert bequeath("trial", "log", 0).out == "␛[31mred␛[0m\n100%\nno end �\n"


def test_raw_passes_every_byte_on(output: Path, bequeath: Shell) -> None:
    (output / "stdout").write_bytes(b"\x1b[31mred\n")
    assert bequeath("trial", "log", 0, "--raw").out == "\x1b[31mred\n"


def test_rotated_parts_come_in_their_order(output: Path, bequeath: Shell) -> None:
    for name, text in (("stdout.10", "a"), ("stdout.2", "b"), ("stdout.1", "c"), ("stdout", "d")):
        (output / name).write_text(f"{text}\n")
    (output / "stderr").write_text("e\n")
    assert bequeath("trial", "log", 0).out == "a\nb\nc\nd\n"
    assert bequeath("trial", "log", 0, "--stderr").out == "e\n"


def test_silence_is_said(output: Path, bequeath: Shell) -> None:
    said = bequeath("trial", "log", 1)
    assert (said.code, said.out) == (0, "")
    assert "has printed nothing to stdout" in said.err


def test_a_character_cut_in_two_is_whole_again() -> None:
    text = "größe\n".encode()
    chunks = [text[:3], text[3:]]
    assert list(trial_log.readable(iter(chunks))) == ["größe"]


def test_following_reads_what_comes_and_ends_with_the_attempt(output: Path) -> None:
    """The last words of an attempt come after its end was seen, and are not lost."""
    path = output / "stdout"
    calls = iter(range(1, 100))

    def over() -> bool:
        call = next(calls)
        with path.open("ab") as file:
            file.write({1: b"one\n", 2: b"two\n", 4: b"three\n"}.get(call, b""))
        return call >= 4

    files = LocalFiles(Whereabouts("x", 0, 1, str(output)))
    said = b"".join(log_stream.follow(files, "stdout", over, look_every_s=0.0))
    assert said == b"one\ntwo\nthree\n"


def test_following_survives_a_rotation(output: Path) -> None:
    path = output / "stdout"
    steps = iter(range(100))

    def over() -> bool:
        step = next(steps)
        if step == 2:  # what it writes now nobody has read when the file goes
            with path.open("ab") as file:
                file.write(b"last of the old\n")
            path.rename(path.with_name("stdout.1"))
        if step < 7:
            with path.open("ab") as file:
                file.write(b"%d\n" % step)
        return step >= 6

    files = LocalFiles(Whereabouts("x", 0, 1, str(output)))
    said = b"".join(log_stream.follow(files, "stdout", over, look_every_s=0.0))
    assert said.replace(b"last of the old\n", b"") == b"".join(b"%d\n" % n for n in range(7))
    assert b"1\nlast of the old\n2\n" in said


def test_following_a_finished_trial_ends(output: Path, bequeath: Shell) -> None:
    (output / "stdout").write_text("all\n")
    done = threading.Event()
    said = []

    def follow() -> None:
        said.append(bequeath("trial", "log", 0, "-f"))
        done.set()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    assert done.wait(120)
    thread.join()
    assert said[0].out == "all\n"


def test_each_of_several_nodes_has_an_output_of_its_own(output: Path, bequeath: Shell) -> None:
    """Mutation: that of rank 10 is a part of rank 1's, or any is one of rank 0's."""
    for name in ("stdout", "stdout.1", "stdout.rank1", "stdout.rank1.1", "stdout.rank10"):
        (output / name).write_text(f"{name}\n")
    (output / "stderr.rank2").write_text("no such layer\n")
    (output / "stdout.rank").write_text("of no rank")
    assert bequeath("trial", "log", 0).out == "stdout.1\nstdout\n"
    assert bequeath("trial", "log", 0, "--rank", 1).out == "stdout.rank1.1\nstdout.rank1\n"
    assert bequeath("trial", "log", 0, "--rank", 10).out == "stdout.rank10\n"
    said = bequeath("trial", "log", 0, "--rank", 2)
    assert "nothing to stdout.rank2, but to stderr (--stderr shows it)" in said.err
    assert bequeath("trial", "log", 0, "--rank", 2, "--stderr").out == "no such layer\n"
    listed = bequeath("trial", "files", 0).out
    assert "stdout.rank10" in listed
    assert "stdout.rank " not in listed
