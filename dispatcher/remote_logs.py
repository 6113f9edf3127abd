"""What trials on other machines have printed, fetched when somebody asks."""

from __future__ import annotations

from pathlib import Path

from dispatcher.backends.ssh import experiment_folder
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.remote_wiring import machine_of, places
from dispatcher.ssh import connect


def is_elsewhere(config: ExperimentConfig, worker: str | None) -> bool:
    """Whether this worker's logs are not on this machine."""
    return any(p.worker == worker and p.machine is not None for p in places(config))


def fetch_log(
    config: ExperimentConfig, experiment: str, worker: str, trial: int, attempt: int, into: Path
) -> list[Path]:
    """Fetch the logs of an attempt, rotated parts included, into a folder; the files' paths.

    Blocks for a login and the transfer.

    Raises:
        BackendError: the machine cannot be reached, or a file not be read.
    """
    (place,) = (p for p in places(config) if p.worker == worker)
    assert place.machine is not None
    machine = machine_of(place.worker, place.machine)
    # A relative path begins in the home folder there.
    work = machine.work_folder.removeprefix("~/")
    above = f"{experiment_folder(work, experiment, worker)}/trials/{trial}/{attempt}"
    found: list[Path] = []
    into.mkdir(parents=True, exist_ok=True)
    with connect(machine.target()) as connection:
        for stream in ("stdout", "stderr"):
            names = [stream, *(f"{stream}.{n}" for n in range(1, config.max_log_files + 1))]
            for name in names:
                if connection.exists(f"{above}/{name}"):
                    content = connection.get(f"{above}/{name}", most_bytes=2 * config.max_log_size)
                    (into / name).write_bytes(content)
                    found.append(into / name)
    return found
