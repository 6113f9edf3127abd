"""Several objectives in a study: what is told, what is refused, what is opened again; its page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import bequeath as bq
from dispatcher.errors import UserError
from trial_runtime.api_errors import InvalidMetric

PAGE = Path(__file__).parents[3] / "docs" / "objectives.md"
BOTH = {"default": "maximize", "size": "minimize <= 50"}
SPACE = {"x": bq.int(0, 9)}


def test_all_blocks_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "home"))
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) == 3
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out
    assert "results" in printed
    sizes = [one.result["size"] for one in names["study"].front()]
    assert sizes
    assert max(sizes) <= 500
    assert sizes == sorted(sizes, reverse=True), "the more accurate, the larger"
    assert (names["study"].folder / "hypervolume.png").stat().st_size > 3000


@pytest.mark.parametrize("space", [SPACE, None], ids=["space", "by run"])
def test_a_front_of_what_was_told(tmp_path: Path, space: Any) -> None:
    """Mutation: a study without a space does not give its sampler the objectives."""
    folder = tmp_path / "s"
    with bq.Study(space, tuner="TPE", objectives=BOTH, folder=folder, seed=1) as study:
        for accuracy, size in [(0.9, 51), (0.8, 50), (0.5, 2), (0.4, 3)]:
            t = study.ask()
            if space is None:
                t.suggest_int("x", 0, 9)
            if accuracy == 0.5:
                for lacking in (0.5, {"default": 0.5}, {"default": 0.5, "size": "small"}):
                    with pytest.raises(InvalidMetric, match="no number 'size', which is an obj"):
                        study.tell(t, lacking)
            study.tell(t, {"default": accuracy, "size": size})
        assert [one.id for one in study.front()] == [1, 2]
        best = study.best()
        assert best is not None
        assert best.id == 1
        assert study.experiment.config.optimize_mode == "maximize"
    with bq.Study(
        folder=folder, objectives={"default": "Maximize", "size": "minimize<=50"}
    ) as same:
        assert len(same.trials()) == 4
    with pytest.raises(UserError, match="was made with objectives="):
        bq.Study(folder=folder, objectives={"default": "minimize", "size": "minimize"})


def test_the_direction_follows_the_objectives(tmp_path: Path) -> None:
    modes = {"default": "minimize", "size": "maximize"}
    with bq.Study(SPACE, tuner="Random", objectives=modes, folder=tmp_path / "s") as study:
        for value in (3, 1, 2):
            study.tell(study.ask(), {"default": value, "size": value})
        best = study.best()
        assert best is not None
        assert best.value == 1
        assert len(study.front()) == 3


@pytest.mark.parametrize(
    "given, error",
    [
        ({"objectives": {"default": "up"}}, "the objective 'default' is 'up'"),
        ({"objectives": BOTH, "tuner_args": {"objectives": BOTH}}, "given twice"),
        ({"objectives": BOTH, "optimize": "minimize"}, "but 'objectives' has 'default: maximize'"),
        ({"objectives": BOTH, "tuner": "CMA-ES"}, "searches by one objective"),
    ],
)
def test_objectives_that_do_not_fit(tmp_path: Path, given: dict[str, Any], error: str) -> None:
    with pytest.raises((UserError, ValueError), match=re.escape(error)):
        bq.Study({**SPACE, "y": bq.uniform(0, 1)}, folder=tmp_path / "s", **given)
