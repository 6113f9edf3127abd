"""Notes, tags and stars: none is lost, whoever writes, and the journal knows nothing of them."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher import queries
from dispatcher.errors import StoreError, UserError
from dispatcher.ports import Snapshot
from dispatcher.queries import ExperimentReader, TrialFilter
from dispatcher.store import SqliteJournal
from dispatcher.store import notes as bounds
from dispatcher.store.copying import copy_store
from dispatcher.store.notes import OF_EXPERIMENT, Annotations, read_note, read_tag
from dispatcher.store.replay.folding import compact
from dispatcher.store.verify import rebuild, verify
from tests.integration.store.test_faults import small_disk
from tests.unit.queries.evolution import evolve, make_folder

__all__ = ["small_disk"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = make_folder(tmp_path)
    evolve(made, 8)
    return made


@pytest.fixture
def kept(folder: Path) -> Iterator[Annotations]:
    opened = Annotations.open(folder / "journal.sqlite")
    yield opened
    opened.close()


def given_to(folder: Path, trial: int = OF_EXPERIMENT) -> queries.GivenAnnotations:
    with ExperimentReader.open(folder) as reader:
        return queries.annotations_of(reader, trial)


def texts(folder: Path, trial: int = OF_EXPERIMENT) -> list[str]:
    return [one.text for one in given_to(folder, trial).notes]


def test_what_is_given_is_read(folder: Path, kept: Annotations) -> None:
    assert kept.add_note(3, " good\r\nindeed ") == 1
    assert kept.add_note(OF_EXPERIMENT, "for the paper") == 2
    kept.change_tags(3, ["good", "data:x", "good"], ["nothing"])
    kept.star(3, starred=True)
    found = given_to(folder, 3)
    assert (found.tags, found.starred) == (("data:x", "good"), True)
    assert texts(folder, 3) == ["good\nindeed"]
    of_all = given_to(folder)
    assert (of_all.tags, of_all.starred, texts(folder)) == ((), False, ["for the paper"])
    kept.change_tags(3, ["better"], ["good"])
    kept.star(3, starred=False)
    assert not kept.remove_note(4, 1)
    assert not kept.remove_note(3, 1 << 63)
    assert kept.remove_note(3, 1)
    assert not kept.remove_note(3, 1)
    assert given_to(folder, 3) == queries.GivenAnnotations(("better", "data:x"), False, ())


def test_the_number_of_a_note_is_never_used_again(kept: Annotations) -> None:
    """Mutation: without AUTOINCREMENT a removal that comes late takes somebody else's note."""
    first = kept.add_note(1, "mine")
    assert kept.remove_note(1, first)
    assert kept.add_note(1, "yours") > first


WRITER = """
import sys
from pathlib import Path
from dispatcher.store.notes import Annotations
kept = Annotations.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.readline()
for at in range(20):
    kept.add_note(3, f"{sys.argv[2]} {at}")
    kept.change_tags(3, [f"{sys.argv[2]}{at}"], ["shared"] if at % 2 else [])
    kept.change_tags(4, ["shared"], [])
"""


def test_two_who_write_at_once_both_have_what_they_wrote(folder: Path) -> None:
    """Mutation: tags that are read, changed and written back as one text; a deferred BEGIN."""
    both = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder / "journal.sqlite"), name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("a", "b")
    ]  # fmt: skip
    for one in both:
        assert one.stdout is not None
        assert one.stdout.readline() == "open\n"
    for one in both:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    for one in both:
        one.communicate(timeout=60)
        assert one.returncode == 0
    assert sorted(texts(folder, 3)) == sorted(f"{w} {n}" for w in "ab" for n in range(20))
    assert set(given_to(folder, 3).tags) == {f"{w}{n}" for w in "ab" for n in range(20)}
    assert given_to(folder, 4).tags == ("shared",)


def test_replay_compaction_and_copies_leave_them_as_they_are(
    folder: Path, kept: Annotations, tmp_path: Path
) -> None:
    """Mutation: a rebuild that empties all tables, a verification that misses their events."""
    store = folder / "journal.sqlite"
    for trial in (3, OF_EXPERIMENT):
        kept.add_note(trial, "stays")
        kept.change_tags(trial, ["stays"], [])
        kept.star(trial, starred=True)
    before = [given_to(folder, trial) for trial in (3, OF_EXPERIMENT)]
    assert verify(store).ok
    rebuild(store)
    with closing(SqliteJournal.open(store)) as journal:
        journal.save_snapshot(Snapshot(journal.last, "{}"))
        assert compact(journal)
    assert verify(store).ok
    assert [given_to(folder, trial) for trial in (3, OF_EXPERIMENT)] == before
    copy = tmp_path / "copy" / "journal.sqlite"
    copy.parent.mkdir()
    copy_store(store, copy)
    assert [given_to(copy.parent, trial) for trial in (3, OF_EXPERIMENT)] == before


def test_a_change_is_a_change_of_its_trial_and_nothing_else_is(
    folder: Path, kept: Annotations
) -> None:
    """Mutation: a follower hears nothing, or hears of what stayed as it was."""
    with ExperimentReader.open(folder) as reader:
        cursor = queries.cursor_now(reader)

        def changed() -> list[int]:
            nonlocal cursor
            found = queries.changes(reader, cursor)
            cursor = found.cursor
            assert not found.anew
            return [one.trial.id for one in found.trials]

        kept.change_tags(3, ["good"], [])
        kept.star(5, starred=True)
        assert changed() == [3, 5]
        kept.change_tags(3, ["good"], ["bad"])
        kept.star(5, starred=True)
        kept.star(6, starred=False)
        kept.remove_note(3, 77)
        assert changed() == []
        number = kept.add_note(2, "x")
        assert changed() == [2]
        kept.remove_note(2, number)
        kept.star(5, starred=False)
        assert changed() == [2, 5]
        kept.add_note(OF_EXPERIMENT, "x")
        assert changed() == []
        assert queries.changes(reader).trials[-1].trial.starred is False


@given(st.from_regex(r"[^\W\d_][\w./:@%-]{0,63}", fullmatch=True))
def test_each_tag_is_a_word_of_a_condition(text: str) -> None:
    """What is kept as a tag needs no quotes, and means nothing else. Mutation: `and` is one."""
    try:
        tag = read_tag(text)
    except UserError:
        return
    found = queries.parse_condition(f"tag={tag} and tag in ({tag}, x)")
    assert found.values == (tag, tag, "x")
    assert found.parameters == {}


@pytest.mark.parametrize(
    "text",
    [
        *("", "a b", "a,b", "1st", "_x", "-x", "x" * 65, "and", "NULL", "a\n", "a\u202eb", "<b>"),
        *("a'b", "a\u0301\u0301", "a\x00", "\ud800"),
    ],
)
def test_what_is_no_tag_is_refused(text: str, kept: Annotations) -> None:
    with pytest.raises(UserError, match="is no tag") as refused:
        kept.change_tags(3, ["fine", text], [])
    assert "a letter, then" in refused.value.hint
    assert len(refused.value.message) < 600


def test_a_tag_is_one_however_its_letters_are_made() -> None:
    assert read_tag("gru\u0308n") == read_tag("gr\u00fcn") == "gr\u00fcn"


@pytest.mark.parametrize("text", ["a\x1b[2Jb", "a\x00", "\ud800", "a\u2028b", "a\x85b", "a\rb"])
def test_a_note_is_plain_text(text: str) -> None:
    with pytest.raises(UserError, match="none of plain text"):
        read_note(text)


def test_notes_and_tags_are_bounded(
    folder: Path, kept: Annotations, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, message in (("", "needs a text"), (" \n", "needs a text"), ("x" * 2001, "2,000")):
        with pytest.raises(UserError, match=message):
            kept.add_note(1, text)
    assert read_note("x" * 2000) == "x" * 2000
    for at in range(bounds.MOST_NOTES):
        kept.add_note(1, str(at))
    with pytest.raises(UserError, match="one trial has at most 50 notes"):
        kept.add_note(1, "one more")
    kept.change_tags(1, [f"t{at}" for at in range(50)], [])
    with pytest.raises(UserError, match="one trial has at most 50 tags"):
        kept.change_tags(1, ["one-more"], [])
    kept.change_tags(1, ["one-more"], ["t0"])
    assert "one-more" in given_to(folder, 1).tags
    monkeypatch.setattr(bounds, "MOST_NOTES_IN_ALL", 51)
    monkeypatch.setattr(bounds, "MOST_TAGS_IN_ALL", 51)
    kept.add_note(2, "the last")
    with pytest.raises(UserError, match="an experiment has at most 51 notes"):
        kept.add_note(2, "one more")
    kept.change_tags(2, ["last"], [])
    with pytest.raises(UserError, match="an experiment has at most 51 tags"):
        kept.change_tags(2, ["more"], [])
    assert (texts(folder, 2), given_to(folder, 2).tags) == (["the last"], ("last",))


def test_a_full_disk_is_named_and_changes_nothing(small_disk: Path) -> None:
    folder = make_folder(small_disk)
    evolve(folder, 4)
    with closing(Annotations.open(folder / "journal.sqlite")) as kept:
        kept.add_note(1, "before")
        with (small_disk / "filler").open("wb") as filler:
            filler.write(b"x" * (shutil.disk_usage(small_disk).free // 4096 * 4096))
        written = []

        def write_until_full() -> None:
            for at in range(49):
                kept.add_note(1, f"{at} " + "y" * 1_900)
                written.append(at)

        with pytest.raises(StoreError, match="disk is full"):
            write_until_full()
        held = texts(folder, 1)
        assert [one.split()[0] for one in held] == ["before", *map(str, written)]
        (small_disk / "filler").unlink()
        kept.change_tags(1, ["again"], [])
    assert given_to(folder, 1).tags == ("again",)
    assert verify(folder / "journal.sqlite").ok


def test_conditions_find_tags_and_stars(folder: Path, kept: Annotations) -> None:
    kept.change_tags(1, ["good", "data:x"], [])
    kept.change_tags(2, ["bad"], [])
    kept.star(2, starred=True)

    def found(condition: str) -> list[int]:
        with ExperimentReader.open(folder) as reader:
            wanted = TrialFilter(condition=f"({condition}) and id<4")
            return [one.id for one in queries.list_trials(reader, wanted)]

    assert found("tag=good") == [1]
    assert found("tag=data:x and tag=good") == [1]
    assert found("tag!=good") == [0, 2, 3]
    assert found("tag=null") == found("not tag!=null") == [0, 3]
    assert found("tag~a") == [1, 2]
    assert found("tag in (good, bad)") == [1, 2]
    assert found("starred=true or tag='good'") == [1, 2]
    assert found("starred=false") == [0, 1, 3]
    assert found("tag<c") == [2]
    with ExperimentReader.open(folder) as reader:
        assert queries.unknown_parameters(reader, queries.parse_condition("tags=1").parameters) == {
            "tags": "tag"
        }


def test_a_view_in_the_place_of_a_table_is_refused(folder: Path, kept: Annotations) -> None:
    kept.close()
    with closing(sqlite3.connect(folder / "journal.sqlite")) as raw:
        raw.execute("DROP TABLE tags")
        raw.execute("CREATE VIEW tags AS SELECT 3 AS trial, 'x' AS tag")
        raw.commit()
    with pytest.raises(StoreError, match="'tags' is a view made by somebody else"):
        ExperimentReader.open(folder)
