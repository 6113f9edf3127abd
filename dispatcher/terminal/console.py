"""Output of commands: for a terminal, for a pipe, or as one JSON document.

Answers go to stdout, notes and progress to stderr. Colours are used on terminals only and
not where NO_COLOR is set (https://no-color.org).
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import msgspec
import typer

from dispatcher.safe_text import SafeText, made_safe, safe_json, safe_text
from dispatcher.terminal.formatting import NOTHING
from dispatcher.terminal.pager import why_not_in_pager
from dispatcher.text_width import columns_of

if TYPE_CHECKING:
    from rich.console import Console

#: Columns of a rich console that is no terminal; only tests see it.
_DEFAULT_WIDTH = 100

#: To how many characters cells of a column are filled up in a pipe; longer ones stand out.
_WIDEST = 200

#: Blanks between columns of a table, and the fewest characters to which a column is cut.
_GAP = 3
_LEAST = 6


class Column(NamedTuple):
    """A column of a table. ``right`` aligns numbers; ``style`` is one of rich's."""

    title: str
    right: bool = False
    style: str = ""
    shrink: bool = False  # cut its cells where the terminal is too narrow, or leave it out


def is_terminal(stream: TextIO | None = None) -> bool:
    """Whether a stream is a terminal. ``TERM=dumb`` cannot move a cursor and counts as a pipe."""
    stream = sys.stdout if stream is None else stream
    if stream is None:  # of a program without stdout
        return False
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def console(*, stderr: bool = False) -> Console:
    """Return a rich console that makes text harmless, without markup and automatic highlights."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if is_terminal(stream) else _DEFAULT_WIDTH
    return _safe_console()(
        file=stream,
        force_terminal=is_terminal(stream),
        markup=False,
        highlight=False,
        emoji=False,
        width=width,
    )


@cache
def _safe_console() -> type[Console]:
    """Return the console's class; made late, since rich is slow to load."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class SafeConsole(Console):
        """Makes all text harmless on its way out; moves of the cursor are rich's own."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for one in super().render(renderable, options):
                yield one if one.control else one._replace(text=made_safe(one.text))

    return SafeConsole


def emit(*parts: str, err: bool = False) -> None:
    """Print a line, or several, to stdout or stderr; all other functions print by this one.

    Args:
        parts: put beside one another; each is made harmless unless it is :class:`SafeText`.
        err: on stderr.
    """
    with _written():
        typer.echo("".join(made_safe(part) for part in parts), err=err)


def pass_on(text: str) -> None:
    """Print data: unchanged into a pipe or a file, and made harmless on a terminal."""
    with _written():
        typer.echo(made_safe(text) if is_terminal() else text, nl=False)


def pass_on_bytes(content: bytes) -> None:
    """Send data that is no text into a pipe or a file; a terminal gets none."""
    if sys.stdout is not None and not is_terminal():
        with _written():
            sys.stdout.buffer.write(content)
            sys.stdout.flush()


@contextmanager
def _written() -> Iterator[None]:
    """Raise ``UserError`` where a file that output goes to has no room. A pipe without a reader
    is no error of that kind."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        from dispatcher.errors import UserError

        raise UserError(f"output cannot be written: {error.strerror}") from error


def styled(text: str, **looks: Any) -> SafeText:
    """Return the text, made harmless, with styles, which only a terminal gets."""
    return SafeText(typer.style(made_safe(text), **looks))


def note(text: str) -> None:
    """Print a line on stderr that is no part of the answer."""
    emit(styled(text, dim=True) if is_terminal(sys.stderr) else text, err=True)


def say(*parts: str) -> None:
    """Print a line of the answer."""
    emit(*parts)


def heading(text: str) -> SafeText:
    """Return the text, emphasised on a terminal."""
    return styled(text, bold=True) if is_terminal() else made_safe(text)


def print_json(document: Any) -> None:
    """Print one JSON document on stdout, UTF-8, indented by two; structs become objects."""
    plain = msgspec.to_builtins(document, str_keys=True)
    emit(SafeText(safe_json(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False))))


def print_table(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], *, paged: bool = False
) -> None:
    """Print a table: fitted to a terminal, whole lines in a pipe. Cells are made harmless.

    Args:
        columns: its columns.
        rows: their cells.
        paged: on a terminal, through the user's pager.
    """
    if not is_terminal():
        emit(SafeText("\n".join(_whole_lines(columns, rows))))
        return
    cells = [[safe_text(cell) for cell in row] for row in rows]
    text = SafeText("\n".join(fitted_lines(columns, cells, get_terminal_size().columns)))
    why_not = why_not_in_pager(text) if paged else ""
    if why_not is None:
        return
    emit(text)
    if why_not:  # below the table, where it is seen
        note(f"{why_not}; the table is printed instead")


def _whole_lines(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield lines made harmless, each as long as it is, in columns. Harmless characters take the
    place of as many, so that a line is made harmless as a whole."""
    everything = [[column.title for column in columns], *rows]
    widths = [min(_WIDEST, max(map(len, cells))) for cells in zip(*everything, strict=True)]
    sides = [">" if column.right else "<" for column in columns]
    line = "  ".join([f"{{:{side}{wide}}}" for side, wide in zip(sides, widths, strict=True)])
    for row in everything:
        yield safe_text(line.format(*row)).rstrip()


def fitted_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int
) -> Iterator[str]:
    """Yield the lines of a table for a terminal, its titles first: dim titles, no lines, room
    between columns. Thousands of rows take milliseconds, which rich's tables do not.

    Args:
        columns: its columns.
        rows: their cells, made harmless.
        width: columns of the terminal, to which it is fitted.
    """
    # No more of a cell is seen, and a text of megabytes takes long to be measured.
    cells = [[cell[: 4 * width].replace("\t", " ") for cell in row] for row in rows]
    widths = fitted(columns, cells, width)
    shown = [at for at, wide in enumerate(widths) if wide]
    titles = [column.title for column in columns]
    for row, style in ((titles, "dim"), *((row, "") for row in cells)):
        parts = []
        for at in shown:
            column = columns[at]
            before, text, after = _in_cell(row[at], widths[at], right=column.right)
            looks = style or column.style
            parts.append(f"{before}{styled(text, **{looks: True}) if looks else text}{after}")
        yield (" " * _GAP).join(parts).rstrip()


def _in_cell(text: str, width: int, *, right: bool) -> tuple[str, str, str]:
    """Return the blanks before a text that is cut to a width, the text, and the blanks after it."""
    long = columns_of(text)
    if long > width:
        from rich.cells import set_cell_size

        text = f"{set_cell_size(text, width - 1).rstrip()}…"
        long = columns_of(text)
    blanks = " " * (width - long)
    return (blanks, text, "") if right else ("", text, blanks)


def rich_table(
    columns: Sequence[Column], rows: Iterable[Sequence[Any]], width: int | None = None
) -> Any:
    """Return a table for rich: no lines, dim titles, room between columns.

    Args:
        columns: its columns.
        rows: texts, or rich's ``Text``.
        width: columns of the terminal, to which it is fitted; None: as wide as it is.
    """
    from rich.table import Table
    from rich.text import Text

    cells = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    widths = fitted(columns, [[str(cell) for cell in row] for row in cells], width)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    shown = [at for at, wide in enumerate(widths) if wide]
    for at in shown:
        table.add_column(
            columns[at].title,
            justify="right" if columns[at].right else "left",
            style=columns[at].style,
            no_wrap=True,
            overflow="ellipsis",
            width=widths[at],
        )
    for row in cells:
        table.add_row(*(row[at] for at in shown))
    return table


def fitted(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None
) -> list[int]:
    """Return the width of each column in characters; 0 for one that is left out.

    Columns without any text are left out first. Then those that may shrink do, from the right, down
    to their titles, and are left out. The others, such as a trial's number, are never cut: if even
    they have no room, the first two stay, and the last are left out.

    Args:
        columns: the columns.
        rows: their cells.
        width: columns of the terminal; None: unlimited.
    """
    widths = [
        max(columns_of(text) for text in (column.title, " ", *(row[at] for row in rows)))
        for at, column in enumerate(columns)
    ]

    def excess() -> int:
        shown = [wide for wide in widths if wide]
        return sum(shown) + _GAP * (len(shown) - 1) - (width or 0)

    if width is None:
        return widths
    give_way = [at for at in reversed(range(len(columns))) if columns[at].shrink]
    for at in reversed(range(1, len(columns))):
        if excess() > 0 and rows and all(row[at] in ("", NOTHING) for row in rows):
            widths[at] = 0
    for at in give_way:
        least = max(columns_of(columns[at].title), _LEAST)
        widths[at] = max(min(widths[at], least), widths[at] - max(0, excess()))
    firm = [at for at in range(len(columns)) if at not in give_way]
    for at in (*give_way, *reversed(firm[2:])):
        if excess() > 0:
            widths[at] = 0
    return widths


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values, a line for each pair."""
    pairs = [(name, safe_text(text)) for name, text in facts]
    width = max((len(name) for name, _ in pairs), default=0)
    for name, text in pairs:
        label = name.ljust(width)
        say(styled(label, dim=True) if is_terminal() else label, "  ", text)
