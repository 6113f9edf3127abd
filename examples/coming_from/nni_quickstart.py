"""Width, learning rate and momentum of a network, searched for by TPE."""

import torch
from sklearn.datasets import load_digits
from torch import nn

import bequeath as bq


def trial(parameters):
    pictures, labels = map(torch.tensor, load_digits(return_X_y=True))
    pictures = pictures.float() / 16
    width = parameters["features"]
    model = nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )
    optimiser = torch.optim.SGD(
        model.parameters(), lr=parameters["lr"], momentum=parameters["momentum"]
    )
    for _ in range(5):
        for batch in torch.arange(1400).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(pictures[batch]), labels[batch]).backward()
            optimiser.step()
        accuracy = (model(pictures[1400:]).argmax(1) == labels[1400:]).float().mean().item()
        bq.report_intermediate(accuracy)
    return accuracy


experiment = bq.Experiment(
    trial=trial,
    tuner="TPE",
    search_space={
        "features": bq.choice(128, 256, 512, 1024),
        "lr": bq.loguniform(0.0001, 0.1),
        "momentum": bq.uniform(0, 1),
    },
    trial_concurrency=2,
    max_trial_number=10,
    training_service={"platform": "local", "reuse_mode": "forked", "preload": ["torch"]},
)
experiment.run()
print(experiment.best().value, experiment.best().parameters)
