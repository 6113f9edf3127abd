"""For NNI: one generation of one member. It reports first and saves its weights afterwards."""

import argparse
import os

import nni
import torch
from sklearn.datasets import load_digits
from torch import nn


def main(args):
    pictures, labels = map(torch.tensor, load_digits(return_X_y=True))
    pictures = pictures.float().reshape(-1, 1, 8, 8) / 16
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)
    )
    before = os.path.join(args["load_checkpoint_dir"], "model.pth")
    if os.path.isfile(before):
        model.load_state_dict(torch.load(before))
    optimiser = torch.optim.SGD(model.parameters(), lr=args["lr"], momentum=args["momentum"])
    for epoch in range(1, args["epochs"] + 1):
        for batch in torch.randperm(1400).split(args["batch_size"]):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(pictures[batch]), labels[batch]).backward()
            optimiser.step()
        accuracy = (model(pictures[1400:]).argmax(1) == labels[1400:]).float().mean().item()
        if epoch < args["epochs"]:
            nni.report_intermediate_result(accuracy)
        else:
            nni.report_final_result(accuracy)
    os.makedirs(args["save_checkpoint_dir"], exist_ok=True)
    torch.save(model.state_dict(), os.path.join(args["save_checkpoint_dir"], "model.pth"))


def get_params():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load_checkpoint_dir")
    parser.add_argument("--save_checkpoint_dir")
    return parser.parse_known_args()[0]


if __name__ == "__main__":
    params = vars(get_params())
    params.update(nni.get_next_parameter())
    main(params)
