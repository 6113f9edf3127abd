"""For NNI: one trial, which goes on from the weights that its tuner names."""

import nni
import torch
from sklearn.datasets import load_digits
from torch import nn

parameters = nni.get_next_parameter()
pictures, labels = map(torch.tensor, load_digits(return_X_y=True))
pictures = pictures.float() / 16
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
if parameters["restore_path"] is not None:
    model.load_state_dict(torch.load(parameters["restore_path"]))
optimiser = torch.optim.SGD(model.parameters(), lr=parameters["lr"])
for batch in torch.randperm(1400).split(16):
    optimiser.zero_grad()
    nn.functional.cross_entropy(model(pictures[batch]), labels[batch]).backward()
    optimiser.step()
accuracy = (model(pictures[1400:]).argmax(1) == labels[1400:]).float().mean().item()
torch.save(model.state_dict(), parameters["save_path"])
nni.report_final_result(accuracy)
