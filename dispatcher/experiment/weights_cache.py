"""The cache of parents' weights on the hosts' own disks: whether there is one, and its size."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dispatcher.experiment.fields import Section, Size, Text, choice_reader

CACHE_BYTES = 10 << 30

_read_word = choice_reader("auto", "always", "off")


def _read_when(value: object) -> object:
    if value is False:  # an 'off' that a tool wrote as a truth value
        return "off"
    return _read_word(value)


def _check_folder(text: str) -> str:
    if not text.startswith(("/", "~")) or "\0" in text or "\n" in text:
        raise ValueError(
            f"must be a path from the root of each host, or from '~' there, not {text!r}"
        )
    return text


class WeightsCacheConfig(Section):
    """Copies of parents' data files on each host's own disk, fetched once for all children."""

    when: Annotated[
        Annotated[Literal["auto", "always", "off"], BeforeValidator(_read_when)],
        Field(
            description="`auto`: where weights lie on a network file system; `always`: also on a "
            "disk of the host; `off`. May be written in place of the section."
        ),
    ] = "auto"
    size: Annotated[
        Size, Field(description="Most bytes of a host's cache; the least recently used go.")
    ] = CACHE_BYTES
    directory: Annotated[
        Annotated[Text, AfterValidator(_check_folder)] | None,
        Field(
            description="Folder of the cache on a local disk of each host, which experiments may "
            "share; if not given, below the user's cache folder there, or below `/var/tmp` where "
            "the home is on the network."
        ),
    ] = None

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``auto`` and ``off`` in place of a section."""
        return {"when": value} if isinstance(value, str | bool) else value
