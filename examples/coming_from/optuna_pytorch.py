"""How many layers, how wide, which optimiser: a network whose shape is suggested as it is built."""

import torch
from sklearn.datasets import load_digits
from torch import nn

import bequeath as bq

pictures, labels = map(torch.tensor, load_digits(return_X_y=True))
pictures = pictures.float() / 16
x, valid_x, y, valid_y = pictures[:1400], pictures[1400:], labels[:1400], labels[1400:]


def network(t):
    layers, width = [], 64
    for n in range(t.suggest_int("layers", 1, 3)):
        units = t.suggest_int(f"units{n}", 4, 128)
        dropout = nn.Dropout(t.suggest_float(f"dropout{n}", 0.2, 0.5))
        layers += [nn.Linear(width, units), nn.ReLU(), dropout]
        width = units
    return nn.Sequential(*layers, nn.Linear(width, 10))


def trial(t):
    model = network(t)
    kind = getattr(torch.optim, t.suggest_categorical("optimiser", ["Adam", "RMSprop", "SGD"]))
    optimiser = kind(model.parameters(), lr=t.suggest_float("lr", 1e-5, 1e-1, log=True))
    for epoch in range(10):
        model.train()
        for batch in torch.randperm(len(x)).split(128):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimiser.step()
        model.eval()
        accuracy = (model(valid_x).argmax(1) == valid_y).float().mean().item()
        t.report(accuracy, epoch)
        if t.should_stop():
            break
    return accuracy


study = bq.Study(assessor="Medianstop")
study.optimize(trial, n_trials=20)
print(study.best().value, study.best().parameters)
