"""The example: a network that the search has trained reads digits that were drawn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.inference.models import Models
from dispatcher.operations.arguments import AskModel
from dispatcher.operations.operation import Context, perform
from dispatcher.operations.table import INFER
from tests.support.processes import end_processes_of
from tests.support.trained_digits import train_digits

pytest.importorskip("torch")
datasets = pytest.importorskip("sklearn.datasets")

MANY = 20


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExperimentHandle]:
    handle = train_digits(tmp_path_factory.mktemp("digits"))
    yield handle
    end_processes_of(handle.folder)


def test_the_best_network_reads_digits(digits: ExperimentHandle) -> None:
    """Mutation: other weights than the trial's, or drawings the other way round."""
    import numpy as np

    best = digits.leaders(1).trials[0]
    pictures, labels = datasets.load_digits(return_X_y=True)
    context = Context(models=Models(keep_s=30.0))
    right = 0
    try:
        for picture, label in zip(pictures[-MANY:], labels[-MANY:], strict=True):
            drawn = np.kron(picture.reshape(8, 8) / 16, np.ones((4, 4))).tolist()
            wish = AskModel(request={"digit": drawn})
            told = perform(INFER, context, wish, experiment=str(digits.folder), trial=best.id)
            assert sum(told.answer["scores"].values()) == pytest.approx(1.0, abs=1e-3)
            right += told.answer["answer"] == label
    finally:
        assert context.models is not None
        context.models.close()
    assert best.value is not None
    # Pictures that are not turned are no harder than those by which it was judged.
    assert right / MANY > best.value - 0.2
    assert right > MANY / 5  # guesses get a tenth
    print(f"{right} of {MANY}; validation {best.value:.2f}")
