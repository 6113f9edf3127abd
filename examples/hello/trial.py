"""A trial: logistic regression by gradient descent, going on where its parent stopped."""

import numpy as np

import bequeath as bq

STEPS = 20
FEATURES = 30


def examples(count=2000):
    """Returns points and the side of a noisy plane they lie on; the same for every trial."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(count, FEATURES)) * np.geomspace(3, 0.1, FEATURES)
    sides = points @ rng.normal(size=FEATURES) + rng.normal(size=count) > 0
    return points, sides.astype(float)


def train(parameters):
    """Returns the loss after STEPS more steps; bequeath reports what a trial function returns."""
    rate = parameters.get("rate", 0.5)
    model = {"weights": np.zeros(FEATURES), "bias": np.zeros(1)}
    bq.load_weights(into=model)  # does nothing when there is no parent
    points, sides = examples()
    for _ in range(STEPS):
        guesses = 1 / (1 + np.exp(-(points @ model["weights"] + model["bias"])))
        error = guesses - sides
        model["weights"] -= rate * points.T @ error / len(points)
        model["bias"] -= rate * error.mean()
        loss = float(-np.log(np.where(sides == 1, guesses, 1 - guesses) + 1e-9).mean())
        bq.report_intermediate(loss)
    bq.save_weights(model)
    return loss


if __name__ == "__main__":  # by hand: python trial.py
    bq.report_final(train(bq.get_parameters()))
