"""One trial. It knows neither Katib nor bequeath: arguments in, lines out."""

from argparse import ArgumentParser

from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

parser = ArgumentParser()
parser.add_argument("--alpha", type=float)
parser.add_argument("--loss")
given = parser.parse_args()
pictures, labels = load_digits(return_X_y=True)
model = SGDClassifier(alpha=given.alpha, loss=given.loss)
for epoch in range(5):
    model.partial_fit(pictures[:1400], labels[:1400], classes=range(10))
    print(f"epoch={epoch} accuracy={model.score(pictures[1400:], labels[1400:]):.4f}", flush=True)
