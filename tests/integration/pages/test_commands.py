"""Commands on all pages: the command line takes each as it is printed."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
import typer

from dispatcher.cli.main import root
from tests.support.pages import PAGES, ROOT, Block, blocks, command_lines, words_for

SHELLS = ("sh", "bash", "console", "")

#: Commands in a sentence: the whole of a text in backquotes.
IN_TEXT = re.compile(r"`bequeath ([a-z][^`]*)`")

#: What stands for more words in a sentence, and where something may be left out.
PLACEHOLDER = re.compile(r"…|[\[\]]")


def shown() -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language in SHELLS]


def taken(words: list[str]) -> str:
    """The name of the command that takes these words, all of which were read."""
    command: typer.core.TyperCommand | typer.core.TyperGroup = root()
    name: str | None = None
    context = command.make_context("bequeath", words)
    while isinstance(command, typer.core.TyperGroup):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        if not rest and isinstance(command, typer.core.TyperGroup):
            break  # a sentence about all of its commands
        context = command.make_context(name, rest, parent=context)
    return name or ""


@pytest.mark.parametrize("block", shown(), ids=lambda block: block.place)
def test_a_block_shows_commands_that_are_taken(block: Block) -> None:
    """Mutation: an option is renamed, and a page has its former name."""
    for line in command_lines(block):
        for words in words_for("bequeath", line):
            assert taken([word for word in words if word not in ("[ID", "…]")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_name_commands_that_exist(page: Path) -> None:
    """Values may be missing, or words in capitals. Mutation: an option or a command is renamed."""
    for text in IN_TEXT.findall(page.read_text()):
        line = PLACEHOLDER.sub("", text).replace("plot KIND", "plot progress")
        for words in words_for("bequeath", f"bequeath {line}"):
            with contextlib.suppress(typer.BadParameter):
                assert taken(words), text


def test_there_are_many() -> None:
    """Mutation: no block is seen any more."""
    lines = [line for block in shown() for line in command_lines(block)]
    assert len([words for line in lines for words in words_for("bequeath", line)]) > 80
