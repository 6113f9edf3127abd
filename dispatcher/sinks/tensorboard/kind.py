"""The kind ``tensorboard``: its section of the experiment file, and where its files go."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dispatcher.experiment.fields import Text
from dispatcher.experiment.sink_base import SinkConfig
from dispatcher.sinks.protocol import ExperimentRun, SinkKind, Surroundings
from dispatcher.sinks.tensorboard.sink import TensorBoardSink

#: What else lies in an experiment's folder.
_TAKEN = frozenset({"code", "keys", "logs", "reports", "sinks", "trials", "weights"})


def _check_folder(text: str) -> str:
    path = PurePath(os.path.expanduser(text))
    if "\0" in text:
        raise ValueError("holds a NUL character, which no path can")
    if path.is_absolute():
        return str(path)
    if ".." in path.parts or not path.parts:
        raise ValueError(
            f"must lie in the experiment's folder, or be an absolute path, not {text!r}"
        )
    if path.parts[0] in _TAKEN:
        raise ValueError(f"is a folder of the experiment's own: {path.parts[0]!r}")
    return str(path)


class TensorBoardConfig(SinkConfig):
    """Write files for TensorBoard: scalars, and HParams with parents and generations."""

    kind: Annotated[Literal["tensorboard"], Field(description="Kind of tracker: `tensorboard`.")]
    folder: Annotated[
        Annotated[Text, AfterValidator(_check_folder)],
        Field(
            description="Where the files go: a folder within the experiment's own, or an absolute "
            "path, below which each experiment has a folder called after its id."
        ),
    ] = "tb"


class TensorBoardKind(SinkKind[TensorBoardConfig]):
    """TensorBoard's files, which need no package to be written."""

    protocol = 1
    section = TensorBoardConfig

    def folder_of(self, section: TensorBoardConfig, experiment: ExperimentRun) -> Path:
        """The folder below which the files of one experiment lie."""
        folder = Path(section.folder)
        return folder / experiment.id if folder.is_absolute() else experiment.folder / folder

    def target(self, section: TensorBoardConfig, experiment: ExperimentRun) -> str:
        """Its folder."""
        return str(self.folder_of(section, experiment))

    def cursor_folder(self, section: TensorBoardConfig, experiment: ExperimentRun) -> Path | None:
        """The cursor lies with the files: whoever removes these removes it, too."""
        return self.folder_of(section, experiment)

    def sink_for(self, section: TensorBoardConfig, surroundings: Surroundings) -> TensorBoardSink:
        """Make the sink."""
        return TensorBoardSink(self.folder_of(section, surroundings.experiment), surroundings)
