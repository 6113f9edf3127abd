"""What ``bequeath validate`` says of a file of NNI's."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Shell
from tests.unit.nni.files.conftest import V1, Files


def test_it_says_how_the_tuner_is_asked(bequeath: Shell, tmp_path: Path) -> None:
    files = Files(tmp_path)
    said = bequeath("validate", files.write(V1))
    assert "2, asked for as NNI asks: one when another is over" in said.out
    ahead = bequeath("validate", files.write(V1 + "lookahead: 5\n"))
    assert "2, 5 requests may wait" in ahead.out


def test_an_annotation_that_cannot_be_honoured_is_named_by_file_and_line(
    bequeath: Shell, tmp_path: Path
) -> None:
    files = Files(tmp_path)
    (tmp_path / "code" / "train.py").write_text("\n'''@nni.variable(nni.choice(1), name=x)'''\n")
    annotated = V1.replace("searchSpacePath: space.json\n", "").replace(
        "useAnnotation: false", "useAnnotation: true"
    )
    said = bequeath("validate", files.write(annotated))
    assert said.code == 3
    assert "code/train.py:2: @nni.variable annotates nothing" in said.err
