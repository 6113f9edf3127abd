"""The kind ``tensorboard``: its section of the experiment file, and where its files go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dispatcher.experiment.fields import Text
from dispatcher.experiment.sink_base import SinkConfig
from dispatcher.sinks.protocol import ExperimentRun, SinkKind, Surroundings
from dispatcher.sinks.run_folder import check_folder, folder_of
from dispatcher.sinks.tensorboard.sink import TensorBoardSink


class TensorBoardConfig(SinkConfig):
    """Write files for TensorBoard: scalars, and HParams with parents and generations."""

    kind: Annotated[Literal["tensorboard"], Field(description="Kind of tracker: `tensorboard`.")]
    folder: Annotated[
        Annotated[Text, AfterValidator(check_folder)],
        Field(
            description="Folder of the files: within the experiment's own, or an absolute path, "
            "below which each experiment has a folder called after its id."
        ),
    ] = "tb"


class TensorBoardKind(SinkKind[TensorBoardConfig]):
    """TensorBoard's files, which need no package to be written."""

    protocol = 1
    section = TensorBoardConfig

    def target(self, section: TensorBoardConfig, experiment: ExperimentRun) -> str:
        """Name its folder."""
        return str(folder_of(section.folder, experiment))

    def cursor_folder(self, section: TensorBoardConfig, experiment: ExperimentRun) -> Path | None:
        """The cursor lies with the files: whoever removes these removes it, too."""
        return folder_of(section.folder, experiment)

    def sink_for(self, section: TensorBoardConfig, surroundings: Surroundings) -> TensorBoardSink:
        """Make the sink."""
        return TensorBoardSink(folder_of(section.folder, surroundings.experiment), surroundings)
