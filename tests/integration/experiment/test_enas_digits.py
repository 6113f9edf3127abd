"""The example of ENAS in a short form: subgraphs train and are judged in parallel, in rounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.experiment import load_experiment
from dispatcher.experiment.updates import apply_update
from dispatcher.experiments.creating import create
from dispatcher.head.head import Head
from tests.integration.experiment.conftest import Lab
from tests.support.checker import check_store

FILE = Path(__file__).parents[3] / "examples" / "enas_digits" / "experiment.yml"


def test_trials_share_one_network_and_all_of_a_round_read_one_version(
    lab: Lab, tmp_path: Path
) -> None:
    config = load_experiment(FILE)
    config = config.model_copy(update={"experiment_working_directory": tmp_path})
    folder = create(apply_update(config, "maxTrialNumber", "36"))  # an epoch, and a part
    lab.folders.append(folder)
    assert Head(folder).run() is Phase.COMPLETED
    assert check_store(folder / "journal.sqlite") == []
    rows = lab.rows(folder)
    results: dict[int, Any] = {
        x.trial: json.loads(x.value) for x in rows if isinstance(x, e.FinalReported)
    }
    assert len(results) == 36, "no trial failed"
    reads = {int(x.trial): dict(x.reads) for x in rows if isinstance(x, e.Proposed)}
    first = 5  # somebody began the store, and all four have published
    assert [reads[n] for n in range(4)] == [{}] * 4
    assert [reads[n] for n in range(4, 32)] == [{"omega": first}] * 28
    assert sorted(results[n]["version"] for n in range(4)) == [2, 3, 4, 5]
    assert {results[n]["version"] for n in range(4, 28)} == {first}
    assert sorted(results[n]["version"] for n in range(28, 32)) == [6, 7, 8, 9]
    assert {results[n]["version"] for n in range(32, 36)} == {9}
