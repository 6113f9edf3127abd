"""The digits example: legal mutations, children that compute what their parents did, the tables."""

from __future__ import annotations

import argparse
import copy
import json
import math

import numpy as np
import pytest

pytestmark = pytest.mark.torch


def blocks(*sizes):
    return [{"id": n, "width": w, "kernel": k} for n, (w, k) in enumerate(sizes)]


def test_mutation_changes_the_rate_and_one_thing_of_the_shape(example):
    architecture = example("digits_evolution", "architecture")
    rng = np.random.default_rng(0)
    seen, shapes = set(), set()
    parent = architecture.draw(rng, 3)
    for _ in range(2000):
        child = architecture.mutate(parent, rng)
        assert 1 <= len(child["blocks"]) <= architecture.MOST_BLOCKS
        ids = [block["id"] for block in child["blocks"]]
        assert len(set(ids)) == len(ids)
        assert architecture.RATES[0] <= child["rate"] <= architecture.RATES[1]
        for block in child["blocks"]:
            assert block["width"] in architecture.WIDTHS
            assert block["kernel"] in architecture.KERNELS
        grown = len(child["blocks"]) - len(parent["blocks"])
        if grown:
            seen.add(grown)
            common = [one for one in child["blocks"] if one in parent["blocks"]]
            assert len(common) == min(len(child["blocks"]), len(parent["blocks"]))
        else:
            pairs = zip(child["blocks"], parent["blocks"], strict=True)
            differ = [
                (key, one[key] > other[key])
                for one, other in pairs
                for key in one
                if one[key] != other[key]
            ]
            assert len(differ) == 1
            seen.update(differ)
        shapes.add(len(child["blocks"]))
        parent = child
    ways = {(key, larger) for key in ("width", "kernel") for larger in (True, False)}
    assert seen == {1, -1} | ways
    assert architecture.MOST_BLOCKS in shapes


def test_a_mutation_leaves_its_parent_alone(example):
    architecture = example("digits_evolution", "architecture")
    rng = np.random.default_rng(1)
    parent = architecture.draw(rng)
    before = copy.deepcopy(parent)
    for _ in range(50):
        architecture.mutate(parent, rng)
    assert parent == before


def outputs(network, parent_blocks, child_blocks):
    import torch

    torch.manual_seed(0)
    images = torch.rand(5, 1, 8, 8)
    parent, child = network.Network(parent_blocks), network.Network(child_blocks)
    network.inherit(child, parent.state_dict())
    with torch.no_grad():
        return parent(images), child(images), child


@pytest.mark.torch
@pytest.mark.parametrize(
    "child",
    [
        pytest.param(blocks((4, 3), (8, 3), (4, 1)), id="same"),
        pytest.param(blocks((4, 5), (8, 3), (4, 3)), id="larger kernels"),
        pytest.param(blocks((8, 3), (8, 3), (4, 1)), id="wider first"),
        pytest.param(blocks((4, 3), (16, 3), (4, 1)), id="wider middle"),
        pytest.param(blocks((4, 3), (8, 3), (16, 1)), id="wider last"),
        pytest.param(
            [*blocks((4, 3), (8, 3), (4, 1)), {"id": 9, "width": 4, "kernel": 5}], id="deeper"
        ),
        pytest.param(
            [
                {"id": 0, "width": 4, "kernel": 3},
                {"id": 7, "width": 4, "kernel": 3},
                *blocks((4, 3), (8, 3), (4, 1))[1:],
            ],
            id="a block inserted",
        ),
    ],
)
def test_a_child_that_grew_computes_what_its_parent_did(example, child):
    import torch

    network = example("digits_evolution", "network")
    before, after, _ = outputs(network, blocks((4, 3), (8, 3), (4, 1)), child)
    torch.testing.assert_close(after, before)


def test_a_child_that_grew_can_learn_with_what_is_new(example):
    import torch

    network = example("digits_evolution", "network")
    _, _, child = outputs(network, blocks((4, 3), (4, 3)), blocks((8, 3), (4, 3)))
    child(torch.rand(5, 1, 8, 8)).sum().backward()
    assert child.blocks["1"].weight.grad[:, 4:].abs().sum() > 0


def test_a_child_that_shrank_keeps_what_fits(example):
    network = example("digits_evolution", "network")
    before, after, child = outputs(
        network, blocks((8, 5), (8, 3)), [{"id": 0, "width": 4, "kernel": 3}]
    )
    assert after.shape == before.shape
    assert child.blocks["0"].weight.abs().sum() > 0


def test_the_data_are_three_parts_that_do_not_meet(example):
    digits = example("digits_evolution", "digits")
    parts = digits.load()
    assert len(parts["train"][0]) == digits.TRAIN
    assert len(parts["validation"][1]) == digits.COPIES * digits.VALIDATION
    assert len(parts["test"][1]) == digits.COPIES * (1797 - digits.TRAIN - digits.VALIDATION)


def test_a_search_stops_when_its_budget_is_spent(example):
    study = example("digits_evolution", "study")
    tuner = example("digits_evolution", "tuner")
    found = study.search(
        study.in_process, tuner.DigitsEvolution, seed=0, budget_s=0.3,
        founder_epochs=1, child_epochs=1, population_size=2, sample_size=2,
    )  # fmt: skip
    spent = [step[0] for step in found.path]
    assert spent[-1] >= 0.3
    # Written down to the millisecond: what was just below may read as the budget itself.
    assert all(before <= 0.3 for before in spent[:-1])


def test_reaching_a_threshold_counts_only_within_the_budget(example):
    report = example("digits_evolution", "report")
    path = [(1.0, 0.5, 0.4), (2.0, 0.7, 0.6), (4.0, 0.9, 0.8)]
    assert report.reached_at(path, 0.6, 3) == 2.0
    assert report.reached_at(path, 0.8, 3) is None
    assert report.best_within(path, 3) == (0.7, 0.6)


def test_intervals_are_those_of_student_and_welch(example):
    report = example("digits_evolution", "report")
    mean, half = report.mean_interval([1.0, 2.0, 3.0, 4.0])
    assert mean == 2.5
    assert half == pytest.approx(3.182 * math.sqrt(5 / 3) / 2)
    ratio, low, high = report.ratio_interval([1.0, 2.0, 3.0], [4.0, 8.0, 12.0])
    assert ratio == pytest.approx(0.25)
    # Relative standard deviations of a half and three each: four degrees of freedom.
    assert high == pytest.approx(0.25 * math.exp(2.776 * 0.5 * math.sqrt(2 / 3)))
    assert low * high == pytest.approx(ratio**2)


def test_a_ratio_without_any_spread_has_no_interval(example):
    report = example("digits_evolution", "report")
    assert report.ratio_interval([1.0, 1.0], [4.0, 4.0]) == (0.25, 0.25, 0.25)


def test_the_sweep_chooses_on_its_own_seeds_and_the_others_only_have_what_it_chose(
    example, monkeypatch, tmp_path
):
    study, report = (example("digits_evolution", name) for name in ("study", "report"))

    def found(runner, kind, *, seed, budget_s, **arguments):
        best = {1: 0.6, 2: 0.7}.get(arguments.get("epochs"), 0.8)
        return report.Search(seed, [(1.0, best, best)])

    monkeypatch.setattr(study, "search", found)
    whole = study.Study(
        argparse.Namespace(
            dispatch=False, epochs=[1, 2], first_seed=5, sweep_seeds=2, seeds=5, budget_s=3.0,
            out=tmp_path,
        )
    )  # fmt: skip
    whole.run()
    kept = json.loads((tmp_path / "results.json").read_text())
    assert kept["best_epochs"] == 2
    assert [len(kept["sweep"][epochs]) for epochs in ("1", "2")] == [2, 5]
    assert [len(kept[name]) for name in ("inheriting", "from_scratch")] == [5, 5]
    assert "| 2 (baseline) | 1 | 0.700 |" in report.markdown(kept)
