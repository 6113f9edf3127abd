"""Each morphism against its paper's equations, and on plain arrays."""

from __future__ import annotations

import numpy as np
import pytest

from trial_runtime.errors import WeightsMismatch
from trial_runtime.morphism import deeper, hear, larger_kernel, mix, wider


def two_layers(rng, units=3):
    return {
        "one.weight": rng.normal(size=(units, 4)),
        "one.bias": rng.normal(size=units),
        "two.weight": rng.normal(size=(2, units)),
        "two.bias": rng.normal(size=2),
    }


def forward(weights, x):
    hidden = np.maximum(x @ weights["one.weight"].T + weights["one.bias"], 0)
    return hidden @ weights["two.weight"].T + weights["two.bias"]


def test_net2wider_is_the_worked_example_of_figure_2():
    # Chen et al. (2016), figure 2: of the hidden units h1 and h2 a third is drawn, a copy of h2.
    # It gets the incoming weights (c, d) of h2, and both send on half of f: f/2 each.
    a, b, c, d, e, f = 1.0, 2.0, 3.0, 4.0, 5.0, 6.0
    parent = {"h.weight": np.array([[a, b], [c, d]]), "y.weight": np.array([[e, f]])}
    seed = next(n for n in range(99) if np.random.default_rng(n).integers(2, size=1)[0] == 1)
    child = wider(parent, "h", 3, into=["y"], seed=seed)
    assert child["h.weight"].tolist() == [[a, b], [c, d], [c, d]]
    assert child["y.weight"].tolist() == [[e, f / 2, f / 2]]


def test_net2wider_shares_by_the_number_of_copies():
    rng = np.random.default_rng(0)
    parent = two_layers(rng)
    child = wider(parent, "one", 17, into=["two"], seed=5)
    assert child["one.weight"].shape == (17, 4)
    assert child["one.bias"].shape == (17,)
    x = rng.normal(size=(50, 4))
    np.testing.assert_allclose(forward(child, x), forward(parent, x), atol=1e-12)
    np.testing.assert_array_equal(child["one.weight"][:3], parent["one.weight"])
    assert len({tuple(row) for row in child["one.weight"]}) == 3
    assert child["two.bias"] is parent["two.bias"]  # what did not change is the same object


def test_nothing_is_changed_in_place():
    parent = two_layers(np.random.default_rng(0))
    before = {name: tensor.copy() for name, tensor in parent.items()}
    wider(parent, "one", 9, into=["two"], noise=0.5)
    deeper(parent, "new", after="one")
    hear(parent, "two", 2)
    for name, tensor in before.items():
        np.testing.assert_array_equal(parent[name], tensor)


def test_noise_parts_the_copies_and_spares_the_old():
    parent = two_layers(np.random.default_rng(0), units=8)
    child = wider(parent, "one", 64, into=["two"], noise=0.1)
    np.testing.assert_array_equal(child["one.weight"][:8], parent["one.weight"])
    assert len({tuple(row) for row in child["one.weight"]}) == 64
    exact = wider(parent, "one", 64, into=["two"])
    drift = child["one.weight"][8:] - exact["one.weight"][8:]
    assert drift.std() == pytest.approx(0.1 * parent["one.weight"].std(), rel=0.2)


def test_the_same_seed_gives_the_same_child():
    parent = two_layers(np.random.default_rng(0))
    one, other, third = (wider(parent, "one", 40, into=["two"], seed=n) for n in (1, 1, 2))
    np.testing.assert_array_equal(one["one.weight"], other["one.weight"])
    assert not np.array_equal(one["one.weight"], third["one.weight"])


def test_layers_that_are_added_up_grow_by_the_same_copies():
    rng = np.random.default_rng(3)
    parent = {
        "left.weight": rng.normal(size=(3, 4)),
        "right.weight": rng.normal(size=(3, 4)),
        "out.weight": rng.normal(size=(2, 3)),
    }

    def run(w, x):
        total = x @ w["left.weight"].T + x @ w["right.weight"].T
        return np.maximum(total, 0) @ w["out.weight"].T

    child = wider(parent, ["left", "right"], 11, into=["out"])
    x = rng.normal(size=(20, 4))
    np.testing.assert_allclose(run(child, x), run(parent, x), atol=1e-12)


def test_a_layer_that_reads_itself_grows_both_ways():
    rng = np.random.default_rng(4)
    parent = {
        "in.weight": rng.normal(size=(3, 4)),
        "loop.weight": rng.normal(size=(3, 3)),
        "out.weight": rng.normal(size=(2, 3)),
    }

    def run(w, x):
        h = np.maximum(x @ w["in.weight"].T, 0)
        h = h + np.maximum(h @ w["loop.weight"].T, 0)
        return h @ w["out.weight"].T

    child = wider(parent, ["in", "loop"], 8, into=["loop", "out"])
    assert child["loop.weight"].shape == (8, 8)
    x = rng.normal(size=(20, 4))
    np.testing.assert_allclose(run(child, x), run(parent, x), atol=1e-12)


def test_net2deeper_inserts_the_identity():
    parent = {"conv.weight": np.ones((3, 2, 5, 5), np.float32), "fc.weight": np.ones((4, 9))}
    child = deeper(parent, "new", after="conv", kernel=3)
    assert child["new.weight"].shape == (3, 3, 3, 3)
    assert child["new.weight"].dtype == np.float32
    assert child["new.weight"].sum() == 3
    assert (child["new.weight"][range(3), range(3), 1, 1] == 1).all()
    assert "new.bias" not in child
    linear = deeper(parent, "new", after="fc", bias=True)
    np.testing.assert_array_equal(linear["new.weight"], np.eye(4))
    np.testing.assert_array_equal(linear["new.bias"], np.zeros(4))


def test_a_batch_norm_behind_it_undoes_its_statistics():
    # Section 2.3: the scale is set to the deviation, the shift to the mean.
    mean, variance = np.array([1.0, -2.0]), np.array([4.0, 0.25])
    child = deeper(
        {"fc.weight": np.ones((2, 2))}, "new", after="fc", norm="bn", mean=mean, variance=variance
    )
    x = np.array([[3.0, 7.0], [-1.0, 0.5]])
    normal = (x - child["bn.running_mean"]) / np.sqrt(child["bn.running_var"] + 1e-5)
    np.testing.assert_allclose(normal * child["bn.weight"] + child["bn.bias"], x, atol=1e-12)


def test_a_larger_kernel_has_a_rim_of_zeros():
    old = np.random.default_rng(0).normal(size=(2, 3, 3, 1))
    child = larger_kernel({"c.weight": old}, "c", 5)["c.weight"]
    assert child.shape == (2, 3, 5, 5)
    np.testing.assert_array_equal(child[:, :, 1:4, 2:3], old)
    assert np.abs(child).sum() == pytest.approx(np.abs(old).sum())


def test_new_inputs_are_not_listened_to():
    old = np.arange(6.0).reshape(2, 3)
    child = hear({"c.weight": old}, "c", 2, place=1)["c.weight"]
    assert child.tolist() == [[0, 0, 0, 1, 2], [3, 0, 0, 4, 5]]
    assert hear({"c.weight": old}, "c", 1)["c.weight"].tolist() == [[0, 1, 2, 0], [3, 4, 5, 0]]


def test_a_share_begins_with_one():
    child = mix({"c.weight": np.ones(3, np.float32)}, "share", like="c.weight")
    assert child["share"] == 1
    assert child["share"].dtype == np.float32


W = {
    "a.weight": np.zeros((3, 2)),
    "b.weight": np.zeros((2, 4)),
    "n.weight": np.zeros(5),
    "c.weight": np.zeros((2, 2, 4, 4)),
}


@pytest.mark.parametrize(
    "refused, words",
    [
        (lambda: wider(W, "x", 4, into=[]), r"no tensor 'x.weight'"),
        (lambda: wider(W, "a", 2, into=[]), "3 units already"),
        (lambda: wider(W, "a", 6, into=["b"]), "4 inputs, which are no multiple of 3"),
        (lambda: wider(W, "a", 6, into=[("b", 2)]), "no 3 from 2 on"),
        (lambda: wider(W, "a", 6, into=[], through=["n"]), "5 channels and 3 pass"),
        (lambda: wider(W, "a", 6, into=[], through=["y"]), "no tensor 'y.weight'"),
        (lambda: wider(W, ["a", "b"], 6, into=[]), "cannot grow together"),
        (lambda: wider(W, "n", 6, into=[]), "no linear or convolutional layer"),
        (lambda: deeper(W, "b", after="a"), "'b.weight' already"),
        (lambda: deeper(W, "d", after="c"), "needs a middle"),
        (lambda: deeper(W, "d", after="a", norm="n"), "'n.weight' already"),
        (lambda: larger_kernel(W, "a", 3), "linear and has no kernel"),
        (lambda: larger_kernel(W, "c", 5), "cannot stand in the middle"),
        (lambda: larger_kernel(W, "c", 2), "cannot stand in the middle"),
        (lambda: hear(W, "a", 1, place=3), "cannot come in at 3"),
        (lambda: hear(W, "a", 0), "0 more"),
        (lambda: mix(W, "n.weight", like="a.weight"), "already"),
        (lambda: mix(W, "s", like="x"), "no tensor 'x'"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(refused, words):
    with pytest.raises(WeightsMismatch, match=words):
        refused()
