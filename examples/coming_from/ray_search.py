"""A sampler that learns (TPE), and trials that end early where others are better."""

import time

import bequeath as bq


def trial(parameters):
    for step in range(100):
        loss = 1 / (0.1 + parameters["width"] * step / 100) + parameters["height"] * 0.1
        bq.report_intermediate(loss)
        time.sleep(0.005)
    return loss


experiment = bq.Experiment(
    trial=trial,
    tuner="TPE",
    assessor={"name": "Medianstop"},
    search_space={
        "width": bq.uniform(0, 20),
        "height": bq.uniform(-100, 100),
        "activation": bq.choice("relu", "tanh"),
    },
    optimize_mode="minimize",
    trial_concurrency=4,
    max_trial_number=40,
    training_service={"platform": "local", "reuse_mode": "forked"},
)
experiment.run()
print(experiment.best().value, experiment.best().parameters)
