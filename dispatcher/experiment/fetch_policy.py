"""The files of trials on other machines that are fetched without a request of the user."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from dispatcher.experiment.fields import Section, Size, choice_reader

#: All artefacts that one attempt may keep, see :mod:`trial_runtime.artefacts`.
MOST_BYTES = 256 << 20

_read_word = choice_reader("onEnd", "never")


def _read_when(value: object) -> object:
    """Read YAML's truth values, as people write them in place of a word."""
    if isinstance(value, bool):
        return "onEnd" if value else "never"
    return _read_word(value)


When = Annotated[Literal["onEnd", "never"], BeforeValidator(_read_when)]


class FetchConfig(Section):
    """Files of trials on other machines, brought into the experiment's folder in the background
    when an attempt has ended; `bequeath trial fetch` brings any at any time."""

    logs: Annotated[When, Field(description="Output of the trial: `onEnd` or `never`.")] = "onEnd"
    artefacts: Annotated[
        When, Field(description="Files that it kept with `save_artefact`: `onEnd` or `never`.")
    ] = "onEnd"
    work: Annotated[
        When,
        Field(description="All files that it made in its working directory: `onEnd` or `never`."),
    ] = "never"
    max_size: Annotated[
        Size, Field(description="Most bytes of one attempt; files that do not fit stay there.")
    ] = MOST_BYTES

    @classmethod
    def read_short_form(cls, value: Any) -> Any:
        """Read ``never`` and ``onEnd`` in place of the section."""
        if isinstance(value, str | bool):
            return {"logs": value, "artefacts": value}
        return value

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of files that are fetched at an attempt's end."""
        wanted = {"logs": self.logs, "artefacts": self.artefacts, "work": self.work}
        return tuple(kind for kind, when in wanted.items() if when == "onEnd")


class FetchPolicy(Section):
    """The key stands at the top level of the experiment file: this is a base of
    :class:`~dispatcher.experiment.config.ExperimentConfig`."""

    fetch: Annotated[
        FetchConfig,
        Field(
            description="Files of trials on other machines that are fetched when the trials end; "
            "`never` may be written in place of the section."
        ),
    ] = Field(default_factory=FetchConfig)
