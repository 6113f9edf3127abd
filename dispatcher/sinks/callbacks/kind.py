"""The kind of sink behind the section ``callbacks``: no entry point leads to it, only that key."""

from __future__ import annotations

from dispatcher.experiment.callbacks import CallbacksConfig
from dispatcher.experiment.snapshot import from_json
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.sinks.callbacks.sink import CallbackSink
from dispatcher.sinks.protocol import ExperimentRun, SinkKind, Surroundings
from tuners.objectives import bounded_ones, known_objectives


class CallbacksKind(SinkKind[CallbacksConfig]):
    """Calls what the file names. Trials come when they have ended."""

    protocol = 1
    section = CallbacksConfig
    whole = True
    ends = True

    def target(self, section: CallbacksConfig, experiment: ExperimentRun) -> str:
        """Name the file: the cursor stays the same whatever is called."""
        return "the callbacks of the experiment"

    def sink_for(self, section: CallbacksConfig, surroundings: Surroundings) -> CallbackSink:
        """Make the sink."""
        place = ExperimentFolder(surroundings.experiment.folder)
        config = from_json(place.read_config(), str(place.config))
        bounds = bounded_ones(known_objectives(config.objectives))
        code = section.code_directory or config.trial_code_directory
        return CallbackSink(section, surroundings, code, bounds)
