"""Operations on notes, tags and stars: of a trial, or of the experiment where none is named."""

from __future__ import annotations

from dispatcher import queries
from dispatcher.operations import answers
from dispatcher.operations import arguments as given
from dispatcher.operations.operation import Call, NoChoice


def note(call: Call, wanted: given.WriteNote) -> answers.Annotated:
    """Write a note."""
    return _answer(call, call.handle.annotations.add_note(call.number, wanted.text))


def remove_note(call: Call, wanted: given.RemoveNote) -> answers.Annotated:
    """Take a note away."""
    return _answer(call, call.handle.annotations.remove_note(call.number, wanted.number))


def tag(call: Call, wanted: given.ChangeTags) -> answers.Annotated:
    """Give tags and take tags away."""
    changed = call.handle.annotations.change_tags(call.number, wanted.add, wanted.remove)
    return _answer(call, changed)


def star(call: Call, wanted: NoChoice) -> answers.Annotated:
    """Give a star."""
    return _answer(call, call.handle.annotations.star(call.number, starred=True))


def unstar(call: Call, wanted: NoChoice) -> answers.Annotated:
    """Take the star away."""
    return _answer(call, call.handle.annotations.star(call.number, starred=False))


def _answer(call: Call, now: queries.GivenAnnotations) -> answers.Annotated:
    return answers.Annotated(call.handle.id, call.number, now.tags, now.starred, now.notes)
