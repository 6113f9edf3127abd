"""Asks an experiment of ours by NNI's own Python client; run by a Python that has nni 3.0.

Arguments: the port, and what to do. The answer is the last line, as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import sys

from nni.experiment import Experiment


def seen(experiment: Experiment) -> dict[str, object]:
    """All that it reads."""
    trials = experiment.list_trial_jobs()
    return {
        "id": experiment.id,
        "status": experiment.get_status(),
        "trials": [dataclasses.asdict(one) for one in trials],
        "first": dataclasses.asdict(experiment.get_trial_job(trials[0].trialJobId)),
        "statistics": experiment.get_job_statistics(),
        "metrics": {
            trial: [one.data for one in metrics]
            for trial, metrics in experiment.get_job_metrics().items()
        },
        "one": [one.data for one in experiment.get_job_metrics("0")["0"]],
        "profile": experiment.get_experiment_profile(),
        "metadata": experiment.get_experiment_metadata(experiment.id),
        "results": [dataclasses.asdict(one) for one in experiment.export_data()],
    }


def main() -> None:
    """Do one thing."""
    experiment = Experiment.connect(int(sys.argv[1]))
    wish = sys.argv[2]
    if wish == "look":
        print(json.dumps(seen(experiment)))
    elif wish == "steer":
        experiment.update_trial_concurrency(3)
        experiment.update_max_trial_number(5)
        experiment.update_max_experiment_duration("3h")
        experiment.update_search_space({"y": {"_type": "choice", "_value": [1, 2]}})
        experiment.kill_trial_job("0")
        print(json.dumps(experiment.get_experiment_profile()["params"]))
    else:
        experiment.stop()
        print(json.dumps("stopped"))


main()
