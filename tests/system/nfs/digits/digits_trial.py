"""A small network in numpy on handwritten digits; it begins with its parent's weights."""

import os
import socket
import time

import numpy as np

import trial_runtime as bq


def main(parameters):
    with np.load(os.environ["DIGITS"]) as data:
        pixels, digits = data["pixels"] / 16.0, data["digits"]
    if "restore_path" not in parameters:
        wait_for_another_host(os.environ["HOSTS"])
    rng = np.random.default_rng(bq.trial_id())
    hidden = parameters["hidden"]
    net = {
        "in": rng.normal(0, 0.1, (64, hidden)),
        "out": rng.normal(0, 0.1, (hidden, 10)),
    }
    if "restore_path" in parameters:
        parent = bq.load_weights()
        had = parent["in"].shape[1]
        net["in"][:, :had] = parent["in"]
        net["out"][:had] = parent["out"]
    train(net, pixels[:1200], digits[:1200], parameters["rate"], rng)
    right = forward(net, pixels[1200:])[1].argmax(1) == digits[1200:]
    bq.save_weights(net)
    return float(right.mean())


def wait_for_another_host(folder, limit_s=150.0):
    """Founders begin together, so that both machines have trials however slow one is."""
    give_up = time.monotonic() + limit_s
    n = 0
    while time.monotonic() < give_up:
        n += 1  # a change of its own has the client of NFS look again
        open(f"{folder}/{socket.gethostname()}.{bq.trial_id()}.{n}", "w").close()
        if len({name.partition(".")[0] for name in os.listdir(folder)}) > 1:
            return
        time.sleep(0.5)


def forward(net, pixels):
    inner = np.maximum(pixels @ net["in"], 0)
    return inner, inner @ net["out"]


def train(net, pixels, digits, rate, rng, epochs=3, batch=50):
    for _ in range(epochs):
        order = rng.permutation(len(pixels))
        for start in range(0, len(order), batch):
            some = order[start : start + batch]
            inner, scores = forward(net, pixels[some])
            scores = np.exp(scores - scores.max(1, keepdims=True))
            wrong = scores / scores.sum(1, keepdims=True)
            wrong[np.arange(len(some)), digits[some]] -= 1
            wrong /= len(some)
            back = (wrong @ net["out"].T) * (inner > 0)
            net["out"] -= rate * (inner.T @ wrong)
            net["in"] -= rate * (pixels[some].T @ back)
