"""The origin of one tensor, as an answer has it; ``tensors`` finds it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dispatcher.queries.records import Record


class TensorChange(StrEnum):
    """The fate of a tensor from the parent's weights to the child's."""

    UNCHANGED = "unchanged"  # the same bytes and shape
    CHANGED = "changed"  # the same shape, other bytes
    RESIZED = "resized"  # another shape
    NEW = "new"  # the parent has none of this name
    WRITTEN = "written"  # by this trial; what the parent had is not known


@dataclass(frozen=True, slots=True)
class TensorOrigin(Record):
    """One tensor. ``origin`` is the trial that wrote these bytes first, so many ``generations``
    ago, as far as manifests are there; ``stored`` the one whose file holds them. ``before`` has
    type and shape in the parent, where these were others; ``was`` its name there, if another.
    ``bytes`` is 0 for a tensor that is tied to one before it."""

    name: str
    group: str
    change: TensorChange
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    origin: int | None
    generations: int | None
    stored: int | None
    before: str
    was: str
