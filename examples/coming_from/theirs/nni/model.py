"""For NNI: one trial."""

import nni
import torch
from sklearn.datasets import load_digits
from torch import nn as layers

parameters = nni.get_next_parameter()
pictures, labels = map(torch.tensor, load_digits(return_X_y=True))
pictures = pictures.float() / 16
width = parameters["features"]
model = layers.Sequential(
    layers.Linear(64, width),
    layers.ReLU(),
    layers.Linear(width, width),
    layers.ReLU(),
    layers.Linear(width, 10),
)
optimiser = torch.optim.SGD(
    model.parameters(), lr=parameters["lr"], momentum=parameters["momentum"]
)
for _ in range(5):
    for batch in torch.arange(1400).split(64):
        optimiser.zero_grad()
        layers.functional.cross_entropy(model(pictures[batch]), labels[batch]).backward()
        optimiser.step()
    accuracy = (model(pictures[1400:]).argmax(1) == labels[1400:]).float().mean().item()
    nni.report_intermediate_result(accuracy)
nni.report_final_result(accuracy)
