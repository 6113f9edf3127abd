"""Answers of an MLflow server, as far as we read them: what else is in one takes no memory."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

#: Runs in one answer of a search.
PAGE: Final = 250

_Id = Annotated[str, Meta(max_length=256)]
_Text = Annotated[str, Meta(max_length=10_000)]


class RunTag(msgspec.Struct, frozen=True):
    """A tag of a run."""

    key: _Text
    value: _Text


class RunInfo(msgspec.Struct, frozen=True):
    """The run itself."""

    run_id: _Id


class RunData(msgspec.Struct, frozen=True):
    """The parts of a run; its metrics and parameters are passed over."""

    tags: Annotated[list[RunTag], Meta(max_length=1_000)] = []


class RunThere(msgspec.Struct, frozen=True):
    """A run at the server."""

    info: RunInfo
    data: RunData | None = None


class ExperimentThere(msgspec.Struct, frozen=True):
    """An experiment at the server."""

    experiment_id: _Id = ""
    lifecycle_stage: _Id = ""


class MlflowAnswer(msgspec.Struct, frozen=True):
    """Any answer: each of them has some of these."""

    experiment: ExperimentThere | None = None
    experiment_id: _Id = ""
    run: RunThere | None = None
    runs: Annotated[list[RunThere], Meta(max_length=PAGE)] | None = None
    next_page_token: _Text | None = None
