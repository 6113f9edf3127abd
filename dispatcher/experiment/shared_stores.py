"""The number of versions of shared stores of weights that are kept."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from dispatcher.experiment.fields import MOST, Section

#: Enough to compare or to return to, while versions of many gigabytes still fit a disk.
VERSIONS = 10

_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "all"}]}


def _read_bound(value: object) -> int | str:
    if value == "all":
        return "all"
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise ValueError(f"must be 'all' or a number from 1, not {value!r}")
    return value


Bound = Annotated[int | str, PlainValidator(_read_bound), WithJsonSchema(_SCHEMA)]


class SharedStoresConfig(Section):
    """The number of versions of a shared store that are kept, beside those still in use."""

    keep: Annotated[
        Bound,
        Field(
            description="The newest so many, or `all`. Versions are kept beside them that a trial "
            "which has not ended has pinned or was offered, and that the tuner holds or may "
            "pin in a request that is open. May be written in place of the section."
        ),
    ] = VERSIONS
    stores: Annotated[
        dict[str, Bound],
        Field(description="Other numbers for some stores, by name, such as `{teacher: all}`."),
    ] = Field(default_factory=dict)

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``5`` and ``all`` in place of a section."""
        return {"keep": value} if isinstance(value, str | int) else value

    @property
    def bound(self) -> int:
        """Versions kept of a store without a number of its own; 0: all."""
        return _plain(self.keep)

    @property
    def bounds(self) -> dict[str, int]:
        """Versions kept, by store, of stores with a number of their own; 0: all."""
        return {name: _plain(keep) for name, keep in self.stores.items()}


def _plain(keep: int | str) -> int:
    return keep if isinstance(keep, int) else 0
