"""For Syne Tune: one trial, which reports each epoch until it is stopped."""

from argparse import ArgumentParser

import torch
from sklearn.datasets import load_digits
from syne_tune import Reporter
from torch import nn

parser = ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--momentum", type=float)
parser.add_argument("--epochs", type=int)
parameters, _ = parser.parse_known_args()
report = Reporter()
pictures, labels = map(torch.tensor, load_digits(return_X_y=True))
pictures = pictures.float().reshape(-1, 1, 8, 8) / 16
model = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)
)
optimiser = torch.optim.SGD(model.parameters(), lr=parameters.lr, momentum=parameters.momentum)
for epoch in range(1, parameters.epochs + 1):
    for batch in torch.randperm(1400).split(64):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(pictures[batch]), labels[batch]).backward()
        optimiser.step()
    accuracy = (model(pictures[1400:]).argmax(1) == labels[1400:]).float().mean().item()
    report(epoch=epoch, accuracy=accuracy)
