"""Population based training on a toy: the best learning rate rises and falls on the way."""

import random

import bequeath as bq


def trial(parameters):
    state = bq.load_weights() or {"accuracy": 0.0}
    accuracy, rate = float(state["accuracy"]), parameters["lr"]
    for _ in range(5):
        best = min(0.01, max(0.001, 0.01 - 0.0001 * abs(accuracy - 100)))
        off = max(rate, best) / min(rate, best)
        if off < 3:
            accuracy += random.random() / off
        elif rate > best:
            accuracy -= (off - 3) * random.random()
        accuracy = max(0.0, accuracy + 2 * random.gauss())
    bq.save_weights({"accuracy": accuracy})
    return accuracy


experiment = bq.Experiment(
    trial=trial,
    tuner="PBT",
    tuner_args={"population_size": 8},
    search_space={"lr": bq.uniform(0.0001, 0.02)},
    trial_concurrency=2,
    max_trial_number=80,
    training_service={"platform": "local", "reuse_mode": "forked"},
)
experiment.run()
print(experiment.best().value, experiment.best().parameters)
