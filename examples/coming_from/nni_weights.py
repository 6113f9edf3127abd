"""Children wait for two trials before them, and go on from the better one."""

import torch
from sklearn.datasets import load_digits
from torch import nn

import bequeath as bq


class Generations(bq.Tuner):
    def __init__(self, population):
        self.population = population
        self.accuracy = {}

    def generate_parameters(self, parameter_id):
        rate = 10 ** self.rng(parameter_id).uniform(-3, -1)
        parameters = {"lr": rate, "save_path": self.save_path(parameter_id)}
        first = parameter_id - self.population
        older = [each for each in (first, first + 1) if each >= 0]
        if older:
            self.wait_for(*older)
            best = max(older, key=self.accuracy.get)
            parameters["restore_path"] = self.save_path(best)
        return parameters

    def receive_trial_result(self, parameter_id, parameters, value):
        self.accuracy[parameter_id] = value


def trial(parameters):
    pictures, labels = map(torch.tensor, load_digits(return_X_y=True))
    pictures = pictures.float() / 16
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    bq.load_weights(into=model)
    optimiser = torch.optim.SGD(model.parameters(), lr=parameters["lr"])
    for batch in torch.randperm(1400).split(16):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(pictures[batch]), labels[batch]).backward()
        optimiser.step()
    bq.save_weights(model)
    return (model(pictures[1400:]).argmax(1) == labels[1400:]).float().mean().item()


if __name__ == "__main__":
    experiment = bq.Experiment(
        trial=trial,
        tuner=Generations,
        tuner_args={"population": 4},
        trial_concurrency=2,
        max_trial_number=10,
        training_service={"platform": "local", "reuse_mode": "forked", "preload": ["torch"]},
    )
    experiment.run()
    print(experiment.best().value, experiment.best().parameters)
