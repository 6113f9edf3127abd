"""What ``hosts check FILE`` asks of a machine because the file's trials need it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

from dispatcher.cli.hosts.check_targets import check_targets


def test_it_asks_for_all_that_trials_take(tmp_path: Path) -> None:
    """Mutations: any of the needs is not passed on; pynvml is asked for where no GPU counts."""
    (tmp_path / "experiment.yml").write_text(
        json.dumps(
            {
                "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
                "trialCommand": "true",
                "trialConcurrency": 1,
                "maxTrialNumber": 1,
                "trialGpuNumber": 2,
                "trialCpuNumber": 4,
                "minGpuMemory": "40gb",
                "tuner": {"name": "Random"},
                "trainingService": {
                    "platform": "ssh",
                    "machineList": [{"host": "gpu1", "gpuIndices": [0, 2]}, {"host": "gpu2"}],
                },
            }
        )
    )
    file = tmp_path / "experiment.yml"
    with ExitStack() as closing:
        first, second = (one.needs for one in check_targets(str(file), closing))
    assert (first.gpus, first.cpus, first.gpu_indices) == (2.0, 4.0, (0, 2))
    assert (second.gpu_memory >> 30, second.gpu_indices) == (40, ())
    assert "pynvml" in first.modules

    file.write_text(file.read_text().replace('"trialGpuNumber": 2', '"trialGpuNumber": 0'))
    with ExitStack() as closing:
        first, _ = (one.needs for one in check_targets(str(file), closing))
    assert first.gpus == 0
    assert "pynvml" not in first.modules
