"""A sink that writes lines: the example of ``docs/sinks.md``."""

import json
from pathlib import Path
from typing import Annotated, Literal

from dispatcher.sinks.protocol import Flushed, SinkConfig, SinkKind
from pydantic import Field


class LinesConfig(SinkConfig):
    """Write a file of lines for each trial."""

    kind: Annotated[Literal["lines"], Field(description="Kind of tracker: `lines`.")]
    folder: Annotated[str, Field(description="Where the files go.")]


class LinesSink:
    """Files that are cut back to the place that the cursor says."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.files = {}

    def begin(self, run, place):
        path = self.folder / f"{run.trial}.jsonl"
        size = path.stat().st_size if path.exists() else 0
        if place is not None and size < place:
            return False
        if run.trial in self.files:  # of an attempt that counts no more
            self.files.pop(run.trial).close()
        self.files[run.trial] = path.open("r+b" if place is not None else "wb")
        self.files[run.trial].truncate(place or 0)
        self.files[run.trial].seek(place or 0)
        if place is None:
            self.write(run, {"parameters": str(run.parameters), "parent": run.parent})
        return True

    def write(self, run, line):
        self.files[run.trial].write(json.dumps(line).encode() + b"\n")

    def points(self, run, points):
        for point in points:
            self.write(run, {"step": point.seq, "value": repr(point.number)})

    def end(self, run, end):
        self.write(run, {"outcome": end.outcome, "value": end.value})
        self.files.pop(run.trial).close()

    def drop(self, trials):
        for trial in trials:
            (self.folder / f"{trial}.jsonl").unlink(missing_ok=True)

    def flush(self):
        for file in self.files.values():
            file.flush()
        return Flushed({trial: file.tell() for trial, file in self.files.items()})

    def close(self, status):
        for file in self.files.values():
            file.close()


class LinesKind(SinkKind):
    """The object that the entry point names."""

    protocol = 1
    section = LinesConfig

    def target(self, section, experiment):
        return section.folder

    def sink_for(self, section, surroundings):
        return LinesSink(section.folder)


LINES = LinesKind()
