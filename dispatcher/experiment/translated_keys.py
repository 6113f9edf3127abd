"""Rows of the tables by which files of other frameworks are translated, and what a row does.

Pages of the docs are made from such tables, and translations follow them, so that a page cannot say
another thing than the code does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from dispatcher.experiment.draft import Draft
from tuners.plain_json import JsonPath, written_path


class Does(Enum):
    """The treatment of a key."""

    KEEP = "same"  # goes to a native key as it is
    DROP = "not needed"  # has no effect, and needs none
    WHEN_ON = "same, when on"  # goes to a native key when it is on, dropped while it is off
    FALSE_ONLY = "off only"  # dropped while it is off, refused when it is on
    NOTHING = "no effect"  # dropped, and the user reads so
    REFUSE = "refused"
    SPECIAL = "same, see note"  # translated by code of its own
    SECTION = "section"  # its keys have rows of their own


@dataclass(frozen=True, slots=True)
class Row:
    """One key. ``native`` is our key; ``note`` is for readers of the page."""

    does: Does
    native: str = ""
    note: str = ""


def carry(draft: Draft, row: Row, value: Any, source: JsonPath, base: JsonPath = ()) -> None:
    """Treat one key as its row says; special rows are left to the caller.

    Args:
        draft: takes the translation.
        row: the row of the key in the tables.
        value: the key's value.
        source: path in the user's file.
        base: native path of the section that holds the key.
    """
    match row.does:
        case Does.KEEP:
            draft.put((*base, row.native), value, source, row.note)
        case Does.DROP:
            draft.drop(source, row.note)
        case Does.FALSE_ONLY | Does.WHEN_ON if value in (False, "false", "no", "off"):
            draft.drop(source, "it is off")
        case Does.WHEN_ON:
            draft.put((*base, row.native), value, source, row.note)
        case Does.NOTHING:
            draft.drop(source, row.note)
            draft.remark(f"'{written_path(source)}' has no effect here: {row.note}")
        case Does.REFUSE | Does.FALSE_ONLY:
            draft.refuse(source, "cannot be honoured", row.note)
        case Does.SPECIAL | Does.SECTION:
            raise AssertionError(f"{source} needs an answer of its own")


def given(section: object) -> list[tuple[str, Any]]:
    """Return the keys of a section that are set: in files of others an empty value is none."""
    if not isinstance(section, Mapping):
        return []
    return [(str(key), value) for key, value in section.items() if value is not None]
