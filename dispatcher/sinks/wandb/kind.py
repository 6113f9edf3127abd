"""The kind ``wandb``: its section of the experiment file."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from dispatcher.experiment.fields import Text, choice_reader
from dispatcher.experiment.platform_base import KeyProblem
from dispatcher.experiment.problems import Misfit
from dispatcher.experiment.sink_base import Secret, SinkConfig
from dispatcher.sinks.protocol import ExperimentRun, SinkKind, Surroundings
from dispatcher.sinks.run_folder import check_folder, folder_of
from dispatcher.sinks.wandb.sink import WandbSink
from tuners.plain_json import JsonPath

Mode = Literal["offline", "online"]


def _check_project(text: str) -> str:
    if any(c in "/\\#?%:" or not c.isprintable() for c in text):
        raise ValueError(f"may not hold any of '/\\#?%:', as W&B says: {text!r}")
    return text


class WandbConfig(SinkConfig):
    """Write a run of Weights & Biases for each trial that has ended (needs `bequeath[wandb]`)."""

    secret_attributes: ClassVar[tuple[str, ...]] = ("api_key",)

    kind: Annotated[Literal["wandb"], Field(description="Kind of tracker: `wandb`.")]
    project: Annotated[
        Annotated[Text, Field(max_length=128), AfterValidator(_check_project)],
        Field(description="Project there."),
    ]
    entity: Annotated[
        Annotated[Text, Field(max_length=128)] | None,
        Field(description="User or team there; the usual one if not given."),
    ] = None
    mode: Annotated[
        Annotated[Mode, BeforeValidator(choice_reader("offline", "online"))],
        Field(
            description="`offline`: files that `wandb sync` uploads some time; `online`: uploaded "
            "as trials end."
        ),
    ] = "offline"
    folder: Annotated[
        Annotated[Text, AfterValidator(check_folder)],
        Field(
            description="Folder of the files: within the experiment's own, or an absolute path, "
            "below which each experiment has a folder called after its id."
        ),
    ] = "wandb"
    api_key: Annotated[
        Secret | None,
        Field(
            description="Key for `online`, as `env:NAME` or `file:PATH`; W&B's own if not given."
        ),
    ] = None

    @model_validator(mode="after")
    def _keeps_what_is_here(self) -> Self:
        if self.keep is not None and self.mode == "online":
            raise Misfit(
                "works with 'mode: offline' only: runs that were uploaded stay",
                at=("keep",),
                hint="leave 'keep' out, or write 'mode: offline'",
            )
        return self


class WandbKind(SinkKind[WandbConfig]):
    """Weights & Biases by its package."""

    protocol = 1
    section = WandbConfig
    whole = True

    def check(self, section: WandbConfig, at: JsonPath) -> Iterable[KeyProblem]:
        """Look whether the package is there, without importing it."""
        if importlib.util.find_spec("wandb") is None:
            text = "names Weights & Biases, whose package is not installed"
            yield KeyProblem((*at, "kind"), text, "pip install 'bequeath[wandb]'")

    def target(self, section: WandbConfig, experiment: ExperimentRun) -> str:
        """Project and folder."""
        folder = folder_of(section.folder, experiment)
        return f"project {section.project}, {section.mode}, in {folder}"

    def cursor_folder(self, section: WandbConfig, experiment: ExperimentRun) -> Path | None:
        """The cursor lies with the files, if these are all there is."""
        return folder_of(section.folder, experiment) if section.mode == "offline" else None

    def sink_for(self, section: WandbConfig, surroundings: Surroundings) -> WandbSink:
        """Make the sink; imports the package."""
        folder = folder_of(section.folder, surroundings.experiment)
        return WandbSink(folder, section.project, section.entity, section.mode, surroundings)
