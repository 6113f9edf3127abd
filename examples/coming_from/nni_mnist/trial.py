"""A convolutional network; `python trial.py` runs it by hand, with the values below."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import bequeath as bq


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


def main():
    defaults = {"batch_size": 64, "hidden_size": 512, "lr": 0.01, "momentum": 0.5}
    hyper = {**defaults, **bq.get_parameters()}
    torch.manual_seed(bq.seed())
    device = "cuda" if torch.cuda.is_available() else "cpu"
    pictures, labels = (torch.tensor(each, device=device) for each in load_digits(return_X_y=True))
    pictures = pictures.float().reshape(-1, 1, 8, 8) / 16
    model = Net(hyper["hidden_size"]).to(device)
    rates = {name: hyper[name] for name in ("lr", "momentum")}
    optimiser = torch.optim.SGD(model.parameters(), **rates)
    for epoch in range(3):
        for batch in torch.randperm(1400).split(hyper["batch_size"]):
            optimiser.zero_grad()
            cross_entropy(model(pictures[batch]), labels[batch]).backward()
            optimiser.step()
        with torch.no_grad():
            scores = model(pictures[1400:])
        accuracy = (scores.argmax(1) == labels[1400:]).float().mean().item()
        bq.log(f"epoch {epoch}: {accuracy:.3f}")
        bq.report_intermediate(accuracy)
    return accuracy


if __name__ == "__main__":
    bq.report_final(main())
