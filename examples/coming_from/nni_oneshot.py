"""One-shot: one supernet is trained, and paths through it are judged with its weights."""

import random

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as f

import bequeath as bq


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.ModuleDict({k: nn.Conv2d(1, 8, int(k), padding="same") for k in "35"})
        self.second = nn.ModuleDict({k: nn.Conv2d(8, 16, int(k), padding="same") for k in "35"})
        self.third = nn.Conv2d(16, 16, 1)
        self.head = nn.Linear(64, 10)

    def forward(self, x, path):
        x = f.max_pool2d(f.relu(self.first[path["first"]](x)), 2)
        x = f.relu(self.second[path["second"]](x))
        skipped = x if path["skip"] else 0
        return self.head(f.max_pool2d(f.relu(self.third(x)) + skipped, 2).flatten(1))


def trial(parameters):
    pictures, labels = map(torch.tensor, load_digits(return_X_y=True))
    pictures = pictures.float().reshape(-1, 1, 8, 8) / 16
    model, path = Net(), parameters
    if "supernet" in parameters:
        optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
        for batch in torch.randint(1400, (parameters["supernet"]["steps"], 64)):
            path = {name: random.choice(each) for name, each in parameters["choices"].items()}
            optimiser.zero_grad()
            f.cross_entropy(model(pictures[batch], path), labels[batch]).backward()
            optimiser.step()
        bq.save_weights(model)
    else:
        bq.load_weights(into=model)
    return (model(pictures[1400:], path).argmax(1) == labels[1400:]).float().mean().item()


experiment = bq.Experiment(
    trial=trial,
    tuner="SPOS",
    tuner_args={"supernet": {"steps": 300}, "population_size": 6, "generations": 2, "top": 3},
    search_space={
        "first": bq.choice("3", "5"), "second": bq.choice("3", "5"), "skip": bq.choice(True, False)
    },
    trial_concurrency=2,
    max_trial_number=13,
    training_service={"platform": "local", "reuse_mode": "forked", "preload": ["torch"]},
)  # fmt: skip
experiment.run()
print(experiment.best().value, experiment.best().parameters)
