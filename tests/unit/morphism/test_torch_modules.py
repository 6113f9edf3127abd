"""The child computes its parent's function: real torch modules, batch norm and biases included."""

from __future__ import annotations

import numpy as np
import pytest

from trial_runtime.morphism import chain, deeper, hear, larger_kernel, mix, wider
from tuners.crossing import toward

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
nn = torch.nn

CLOSE = {"atol": 1e-5, "rtol": 0.0}


def settle(model):
    """Trains a little, so that no statistic and no weight is what it was at birth."""
    torch.manual_seed(0)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        loss = model(torch.randn(16, 3, 8, 8)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval()


def same_function(parent, child, weights, training=False):
    """Loads the child strictly, and compares on fresh pictures."""
    child.load_state_dict(weights)
    parent.train(training)
    child.train(training)
    pictures = torch.randn(32, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = parent(pictures)
        assert expected.std() > 1e-3
        torch.testing.assert_close(child(pictures), expected, **CLOSE)


def network(width=6, kernel=3, more=(), bias=True):
    return nn.Sequential(
        nn.Conv2d(3, width, kernel, padding="same", bias=bias),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        *more,
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(width * 16, 10),
        nn.ReLU(),
        nn.Linear(10, 4),
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("training", [False, True])
def test_wider_convolution_through_batch_norm_and_flatten(bias, training):
    parent = settle(network(bias=bias))
    weights = wider(parent.state_dict(), "0", 15, through=["1"], into=["5"], seed=3)
    same_function(parent, network(15, bias=bias), weights, training)


def test_wider_linear():
    parent = settle(network())
    child = network()
    child[5], child[7] = nn.Linear(96, 23), nn.Linear(23, 4)
    same_function(parent, child, wider(parent.state_dict(), "5", 23, into=["7"]))


def test_wider_through_a_depthwise_convolution_and_prelu():
    def build(width):
        return nn.Sequential(
            nn.Conv2d(3, width, 1),
            nn.PReLU(width, init=0.1),
            nn.Conv2d(width, width, 3, groups=width, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 5, 1),
        )

    parent = settle(build(4))
    weights = wider(parent.state_dict(), "0", 9, through=["1", "2", "3"], into=["5"])
    same_function(parent, build(9), weights)


@pytest.mark.parametrize("norm", [None, "batch norm"])
def test_deeper_convolution(norm):
    parent = settle(network())
    weights = deeper(
        parent.state_dict(), "new.0", after="0", kernel=5, norm="new.1" if norm else None
    )
    extra = [nn.Conv2d(6, 6, 5, padding="same"), *([nn.BatchNorm2d(6)] if norm else []), nn.ReLU()]

    class Deeper(nn.Module):
        def __init__(self):
            super().__init__()
            self.old, self.new = network(), nn.Sequential(*extra)

        def forward(self, x):
            return self.old[3:](self.new(self.old[:3](x)))

    named = {
        name if name.startswith("new.") else f"old.{name}": tensor
        for name, tensor in weights.items()
    }
    same_function(parent, Deeper(), named)


def test_deeper_with_the_statistics_of_the_data_holds_in_training_too():
    parent = settle(nn.Sequential(nn.Conv2d(3, 6, 3, padding="same"), nn.ReLU()))
    pictures = torch.randn(64, 3, 8, 8)
    with torch.no_grad():
        seen = parent(pictures)
    weights = deeper(
        parent.state_dict(), "2", after="0", norm="3",
        mean=seen.mean((0, 2, 3)), variance=seen.var((0, 2, 3), unbiased=False),
    )  # fmt: skip
    child = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding="same"), nn.ReLU(),
        nn.Conv2d(6, 6, 3, padding="same"), nn.BatchNorm2d(6), nn.ReLU(),
    )  # fmt: skip
    child.load_state_dict(weights)
    child.train()
    with torch.no_grad():
        torch.testing.assert_close(child(pictures), seen, **CLOSE)


def test_larger_kernel():
    parent = settle(network())
    same_function(parent, network(kernel=7), larger_kernel(parent.state_dict(), "0", 7))


class Skipping(nn.Module):
    """``joined``: the second layer reads the input as well; ``mixed``: it is added."""

    def __init__(self, joined=False, mixed=False):
        super().__init__()
        self.one = nn.Conv2d(3, 3, 3, padding=1)
        self.two = nn.Conv2d(6 if joined else 3, 3, 3, padding=1)
        self.joined = joined
        if mixed:
            self.share = nn.Parameter(torch.tensor(0.0))

    def forward(self, x):
        hidden = torch.relu(self.one(x))
        if hasattr(self, "share"):
            hidden = self.share * hidden + (1 - self.share) * x
        return self.two(torch.cat([hidden, x], 1) if self.joined else hidden)


def test_skips_by_concatenation_and_by_addition():
    parent = settle(Skipping())
    same_function(parent, Skipping(joined=True), hear(parent.state_dict(), "two", 3))
    share = mix(parent.state_dict(), "share", like="one.weight")
    same_function(parent, Skipping(mixed=True), share)


class Chain(nn.Module):
    """A chain of blocks, as ``morphism.chain`` understands it."""

    def __init__(self, blocks, norms):
        super().__init__()
        self.plan = blocks
        self.blocks, self.norms = nn.ModuleDict(), nn.ModuleDict()
        for place, block in enumerate(blocks):
            name, width = str(block["id"]), block["width"]
            into = chain.inputs(blocks, place, 3)
            self.blocks[name] = nn.Conv2d(into, width, block["kernel"], padding="same")
            if norms:
                self.norms[name] = nn.BatchNorm2d(width)
        self.head = nn.Linear(4 * blocks[-1]["width"], 4)

    def forward(self, x):
        seen = {}
        for block in self.plan:
            name = str(block["id"])
            x = self.blocks[name](torch.cat([x, *(seen[skip] for skip in block["skips"])], 1))
            if name in self.norms:
                x = self.norms[name](x)
            x = seen[block["id"]] = torch.relu(x)
        return self.head(nn.functional.adaptive_avg_pool2d(x, 2).flatten(1))


PLAN = [
    {"id": 0, "width": 4, "kernel": 3, "skips": []},
    {"id": 1, "width": 5, "kernel": 1, "skips": []},
    {"id": 2, "width": 6, "kernel": 3, "skips": [0]},
]
STEPS = [
    {"op": "deeper", "after": 1, "block": 3},
    {"op": "wider", "block": 0, "width": 9},  # read by block 1 and, behind block 3, by block 2
    {"op": "skip", "from": 1, "into": 2},
    {"op": "wider", "block": 1, "width": 7},  # read by block 3 and, last, by block 2
    {"op": "kernel", "block": 1, "kernel": 5},
    {"op": "wider", "block": 3, "width": 8},  # read by block 2, before the skips
    {"op": "deeper", "after": 2, "block": 4},
    {"op": "wider", "block": 4, "width": 11},  # read by the head
]


@pytest.mark.parametrize("norms", [False, True])
def test_a_chain_of_steps_of_every_kind(norms):
    parent = settle(Chain(PLAN, norms))
    blocks, weights = PLAN, parent.state_dict()
    for count, step in enumerate(STEPS, 1):
        blocks = chain.grown(blocks, step)
        weights = chain.inherit(
            parent.state_dict(), PLAN, STEPS[:count], norm_name="norms.{}" if norms else None
        )
        same_function(parent, Chain(blocks, norms), weights)
    untouched = parent.state_dict()["head.bias"]
    np.testing.assert_array_equal(weights["head.bias"].numpy(), untouched.numpy())


def test_half_precision_and_other_types_are_kept():
    parent = {name: tensor.bfloat16() for name, tensor in Chain(PLAN, False).state_dict().items()}
    for tensor in chain.inherit(parent, PLAN, STEPS).values():
        assert tensor.dtype == torch.bfloat16


@pytest.mark.parametrize("norms", [False, True])
def test_a_child_of_two_parents_computes_what_the_fitter_one_does(norms):
    fitter_blocks = chain.grown(PLAN, {"op": "wider", "block": 1, "width": 8})
    other = PLAN
    for step in STEPS:
        other = chain.grown(other, step)
    fitter = settle(Chain(fitter_blocks, norms))
    steps = toward(fitter_blocks, other, lambda: True, 16)
    assert {step["op"] for step in steps} == set(chain.OPERATIONS)
    blocks = fitter_blocks
    for step in steps:
        blocks = chain.grown(blocks, step)
    weights = chain.inherit(
        fitter.state_dict(), fitter_blocks, steps, norm_name="norms.{}" if norms else None
    )
    same_function(fitter, Chain(blocks, norms), weights)
