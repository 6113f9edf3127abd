"""Notes, tags and stars: what people write beside trials, and beside the experiment as a whole.

They lie in the store, beside the journal and not in it: a replay knows nothing of them, compaction
and a rebuild leave them as they are, and a copy of the store has them. Each change is one short
transaction, and it adds or takes away; it never writes what somebody has read back. So two who
change the same trial at once both have what they wanted, beside a running head or without one.
What a trial is given counts as a change of the trial (``touches``): who follows the store sees it.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from dispatcher.errors import UserError
from dispatcher.store.faults import UNREADABLE, store_error
from dispatcher.store.migrate import open_up_to_date
from dispatcher.store.touches import next_touch, stamp

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

#: Stands for the experiment where others have the number of a trial.
OF_EXPERIMENT: Final = -1

#: Characters of a note and of a tag.
MOST_TEXT: Final = 2_000
MOST_TAG: Final = 64

#: Notes and tags of one trial, or of the experiment.
MOST_NOTES: Final = 50
MOST_TAGS: Final = 50

#: Notes and tags of an experiment with all its trials: some tens of megabytes at most.
MOST_NOTES_IN_ALL: Final = 10_000
MOST_TAGS_IN_ALL: Final = 100_000

#: No row of SQLite has a larger number.
_MOST_NUMBER: Final = (1 << 63) - 1

#: A word of conditions (``queries.where``), so that none needs quotes there or in a shell.
_TAG: Final = re.compile(rf"[^\W\d_][\w./:@%-]{{0,{MOST_TAG - 1}}}")

#: Words that mean something else in a condition.
_RESERVED: Final = frozenset({"and", "or", "not", "in", "true", "false", "null"})

#: Control characters, halves of surrogate pairs, and line breaks that are none on each screen.
_NO_TEXT: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})


class Annotations:
    """Changes notes, tags and stars of one experiment, on a connection of its own. One thread."""

    def __init__(self, path: Path, raw: sqlite3.Connection) -> None:
        self._path = path
        self._raw = raw

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open them in an existing store, which is brought up to date.

        Raises:
            StoreError: it cannot be read or written.
        """
        return cls(path, open_up_to_date(path))

    def add_note(self, trial: int, text: str) -> int:
        """Write a note; return its number, which no other note of the experiment ever has.

        Args:
            trial: its number; :data:`OF_EXPERIMENT` for the experiment.
            text: plain text, of which spaces around it go.

        Raises:
            UserError: it is empty, too long or no plain text, or there are too many.
            StoreError: it cannot be written; nothing has changed then.
        """
        text = read_note(text)
        with self._change(trial) as touched:
            self._demand_room("notes", trial, 1, MOST_NOTES, MOST_NOTES_IN_ALL)
            row = self._raw.execute(
                "INSERT INTO notes (trial, at, text) VALUES (?, ?, ?)", (trial, time.time(), text)
            )
            touched.append(trial)
        assert row.lastrowid is not None
        return row.lastrowid

    def remove_note(self, trial: int, number: int) -> bool:
        """Take a note of this trial away; false if it was gone. Raises ``StoreError``."""
        if number > _MOST_NUMBER:
            return False
        with self._change(trial) as touched:
            statement = "DELETE FROM notes WHERE number = ? AND trial = ?"
            if self._raw.execute(statement, (number, trial)).rowcount:
                touched.append(trial)
        return bool(touched)

    def change_tags(self, trial: int, add: Sequence[str], remove: Sequence[str]) -> None:
        """Give tags and take tags away; others stay. What is in both is given.

        Args:
            trial: its number; :data:`OF_EXPERIMENT` for the experiment.
            add: tags to give.
            remove: tags to take away, if they are there.

        Raises:
            UserError: a text is no tag, or there are too many.
            StoreError: they cannot be written; nothing has changed then.
        """
        new = [(trial, tag) for tag in dict.fromkeys(map(read_tag, add))]
        going = [(trial, tag) for tag in dict.fromkeys(map(read_tag, remove))]
        with self._change(trial) as touched:
            taken = self._raw.executemany("DELETE FROM tags WHERE trial = ? AND tag = ?", going)
            gave = self._raw.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?)", new)
            self._demand_room("tags", trial, 0, MOST_TAGS, MOST_TAGS_IN_ALL)
            if taken.rowcount > 0 or gave.rowcount > 0:
                touched.append(trial)

    def star(self, trial: int, *, starred: bool) -> None:
        """Give a star, or take it away. Raises ``StoreError``."""
        with self._change(trial) as touched:
            if starred:
                statement = "INSERT OR IGNORE INTO stars (at, trial) VALUES (?, ?)"
                done = self._raw.execute(statement, (time.time(), trial))
            else:
                done = self._raw.execute("DELETE FROM stars WHERE trial = ?", (trial,))
            if done.rowcount:
                touched.append(trial)

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._raw.close()

    def _demand_room(self, table: str, trial: int, more: int, most: int, in_all: int) -> None:
        counts = self._raw.execute(
            f"SELECT coalesce(sum(trial = ?), 0), count(*) FROM {table}",  # noqa: S608 - ours
            (trial,),
        ).fetchone()
        for count, bound, whose in zip(
            counts, (most, in_all), ("one trial", "an experiment"), strict=True
        ):
            if count + more > bound:
                text = f"{whose} has at most {bound:,} {table}"
                raise UserError(text, hint="take some away that nobody needs any more")

    @contextmanager
    def _change(self, trial: int) -> Iterator[list[int]]:
        """Change something under the write lock; what is put into the list has changed."""
        touched: list[int] = []
        try:
            self._raw.execute("BEGIN IMMEDIATE")
            yield touched
            if touched and trial != OF_EXPERIMENT:
                stamp(self._raw, touched, next_touch(self._raw))
            self._raw.execute("COMMIT")
        except BaseException as error:
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")
            if isinstance(error, UNREADABLE):
                raise store_error(error, str(self._path)) from error
            raise


def read_note(text: str) -> str:
    """Return a note as it is kept. Raises ``UserError`` if it cannot be."""
    kept = text.replace("\r\n", "\n").strip()
    if not kept:
        raise UserError("a note needs a text")
    if len(kept) > MOST_TEXT:
        raise UserError(
            f"a note of {len(kept):,} characters; {MOST_TEXT:,} are allowed",
            hint="write several, or one that names a file",
        )
    for place, character in enumerate(kept):
        if unicodedata.category(character) in _NO_TEXT and character not in "\n\t":
            raise UserError(
                f"character {place + 1} of the note is none of plain text: {character!r}",
                hint="only line breaks and tabs are allowed of those that cannot be seen",
            )
    return kept


def read_tag(text: str) -> str:
    """Return a tag as it is kept. Raises ``UserError`` if it is none."""
    tag = unicodedata.normalize("NFC", text)
    if _TAG.fullmatch(tag) and tag.lower() not in _RESERVED:
        return tag
    shown = repr(text if len(text) <= MOST_TAG else f"{text[:MOST_TAG]}…")
    raise UserError(
        f"{shown} is no tag",
        hint=f"a letter, then letters, digits or any of _ . / : @ % -, {MOST_TAG} in all; "
        "and, or, not, in, true, false and null are none",
    )
