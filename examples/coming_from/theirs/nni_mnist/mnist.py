"""For NNI: a convolutional network; `python mnist.py` runs it by hand, with the values below."""

import argparse
import logging

import nni
import torch
from nni.utils import merge_parameter
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Subset, TensorDataset

logger = logging.getLogger("mnist")


class Net(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 20, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(20, 50, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(200, hidden_size), nn.ReLU(), nn.Linear(hidden_size, 10)
        )

    def forward(self, x):
        return self.head(self.features(x))


def digits(batch_size):
    pictures, labels = map(torch.tensor, load_digits(return_X_y=True))
    whole = TensorDataset(pictures.float().reshape(-1, 1, 8, 8) / 16, labels)
    train, test = Subset(whole, range(1400)), Subset(whole, range(1400, len(whole)))
    return DataLoader(train, batch_size, shuffle=True), DataLoader(test, 1000)


def accuracy(model, device, test):
    model.eval()
    with torch.no_grad():
        right = sum((model(x.to(device)).argmax(1).cpu() == y).sum().item() for x, y in test)
    model.train()
    return right / len(test.dataset)


def main(args):
    torch.manual_seed(args["seed"])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train, test = digits(args["batch_size"])
    model = Net(args["hidden_size"]).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=args["lr"], momentum=args["momentum"])
    for epoch in range(1, args["epochs"] + 1):
        for x, y in train:
            optimiser.zero_grad()
            cross_entropy(model(x.to(device)), y.to(device)).backward()
            optimiser.step()
        share = accuracy(model, device, test)
        logger.info("epoch %d: %.3f", epoch, share)
        if epoch < args["epochs"]:
            nni.report_intermediate_result(share)
        else:
            nni.report_final_result(share)


def get_params():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--hidden_size", type=int, default=512)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_known_args()[0]


if __name__ == "__main__":
    try:
        main(vars(merge_parameter(get_params(), nni.get_next_parameter())))
    except Exception as exception:
        logger.exception(exception)
        raise
