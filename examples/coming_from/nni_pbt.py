"""Population based training of a network: members train on, copy better ones, move their rates."""

import torch
from sklearn.datasets import load_digits
from torch import nn

import bequeath as bq


def trial(parameters):
    pictures, labels = map(torch.tensor, load_digits(return_X_y=True))
    pictures = pictures.float().reshape(-1, 1, 8, 8) / 16
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)
    )
    bq.load_weights(into=model)
    rates = {name: parameters[name] for name in ("lr", "momentum")}
    optimiser = torch.optim.SGD(model.parameters(), **rates)
    for _ in range(2):
        for batch in torch.randperm(1400).split(parameters["batch_size"]):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(pictures[batch]), labels[batch]).backward()
            optimiser.step()
        accuracy = (model(pictures[1400:]).argmax(1) == labels[1400:]).float().mean().item()
        bq.report_intermediate(accuracy)
    bq.save_weights(model)
    return accuracy


experiment = bq.Experiment(
    trial=trial,
    tuner="PBT",
    tuner_args={"population_size": 4},
    search_space={
        "batch_size": bq.choice(16, 32, 64, 128),
        "lr": bq.loguniform(0.001, 0.1),
        "momentum": bq.uniform(0, 0.9),
    },
    trial_concurrency=2,
    max_trial_number=20,
    training_service={"platform": "local", "reuse_mode": "forked", "preload": ["torch"]},
)
experiment.run()
print(experiment.best().value, experiment.best().parameters)
