"""A full disk under what people write and read of an experiment: all of it, or nothing."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

from dispatcher import queries
from dispatcher.cli.out_file import write_out
from dispatcher.errors import StoreError, UserError
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.queries import ExperimentReader
from dispatcher.store.verify import verify
from tests.faults.storage.conftest import SmallDisk
from tests.unit.queries.evolution import evolve, make_folder

OLDER = Path(__file__).parents[2] / "upgrade" / "store-schema-0003.sqlite.gz"


def names_below(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_first_note_on_a_full_disk_leaves_an_older_store_as_it_is(
    small_disk: SmallDisk,
) -> None:
    """Mutation: a migration without its backup, or half a backup that stays."""
    folder = make_folder(small_disk.folder)
    store = folder / "journal.sqlite"
    store.write_bytes(gzip.decompress(OLDER.read_bytes()))
    handle = ExperimentHandle(folder)
    with ExperimentReader.open(folder) as reader:
        before = queries.list_trials(reader)
    small_disk.fill()
    for change in (
        lambda: handle.annotations.add_note(3, "good"),
        lambda: handle.annotations.change_tags(None, ["good"], []),
        lambda: handle.annotations.star(3, starred=True),
    ):
        with pytest.raises(StoreError) as refused:
            change()
        assert refused.value.hint
    assert not [name for name in names_below(folder) if "backup" in name]
    with sqlite3.connect(store) as opened:
        assert opened.execute("SELECT version_num FROM schema_version").fetchall() == [("0003",)]
    with ExperimentReader.open(folder) as reader:
        assert queries.list_trials(reader) == before
    small_disk.free()
    assert [one.text for one in handle.annotations.add_note(3, "good").notes] == ["good"]
    assert (folder / "journal.sqlite.schema-0003.backup").is_file()
    assert verify(store).ok


def test_notes_on_a_disk_that_becomes_full_are_whole_or_not_there(small_disk: SmallDisk) -> None:
    """Mutation: a note without its touch, or one that is said to be there and is not."""
    folder = make_folder(small_disk.folder)
    evolve(folder, 4)
    handle = ExperimentHandle(folder)
    texts = ["first"]
    handle.annotations.add_note(2, "first")
    small_disk.fill()
    for number in range(50):
        text = f"{number} " + "y" * 1_900
        try:
            handle.annotations.add_note(2, text)
        except StoreError as error:
            refused = error
            break
        texts.append(text)
    else:
        pytest.fail("the disk is not full")
    assert "disk" in refused.message
    with ExperimentReader.open(folder) as reader:
        assert [one.text for one in queries.trial(reader, 2).notes] == texts
    small_disk.free()
    with ExperimentReader.open(folder) as reader:
        cursor = queries.cursor_now(reader)
        handle.annotations.add_note(2, "last")
        changed = queries.changes(reader, cursor)
        assert [one.trial.id for one in changed.trials] == [2]
        assert [one.text for one in queries.trial(reader, 2).notes] == [*texts, "last"]
    assert verify(folder / "journal.sqlite").ok


def test_an_experiment_that_is_over_can_be_looked_at_on_a_full_disk(small_disk: SmallDisk) -> None:
    """Mutation: a reader that needs room for its index: nobody can see what fills the disk."""
    folder = make_folder(small_disk.folder)
    evolve(folder, 4)
    with sqlite3.connect(folder / "journal.sqlite") as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    assert not [name for name in names_below(folder) if name.endswith(("-wal", "-shm"))]
    small_disk.fill()
    with ExperimentReader.open(folder) as reader:
        assert len(queries.list_trials(reader)) >= 4
        assert queries.experiment_summary(reader).trials >= 4


def test_an_export_on_a_full_disk_leaves_the_one_before(small_disk: SmallDisk) -> None:
    """Mutation: the file is emptied before there is room for another one."""
    target = small_disk.folder / "trials.csv"
    write_out(target, b"before\n")
    target.chmod(0o640)
    small_disk.fill()
    with pytest.raises(UserError, match="No space left"):
        write_out(target, b"x" * 100_000)
    assert target.read_bytes() == b"before\n"
    assert names_below(small_disk.folder) == {"trials.csv", "ballast"}
    small_disk.free()
    write_out(target, b"after\n")
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"after\n", 0o640)


def test_an_export_goes_through_no_link(tmp_path: Path) -> None:
    """Mutation: a link that somebody has put at a name that one can guess is followed."""
    thesis = tmp_path / "thesis"
    thesis.write_text("mine")
    target = tmp_path / "trials.csv"
    target.symlink_to(thesis)
    write_out(target, b"rows")
    assert thesis.read_text() == "mine"
    assert (target.is_symlink(), target.read_bytes()) == (False, b"rows")
    with pytest.raises(UserError, match="directory"):
        write_out(tmp_path, b"rows")
