"""NNI's annotations: the search space that they make, and the code that they become."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dispatcher.experiment.loader import converted
from dispatcher.nni.annotated import BadAnnotation, annotated_space, annotations, rewrite_annotated
from dispatcher.nni.annotated.annotations import expanded
from dispatcher.nni.annotated.edits import Unreadable
from dispatcher.nni.annotated.smart_parameters import keyed
from dispatcher.nni.files.tables import ANNOTATIONS
from tests.unit.nni.files.conftest import V1, Files

TRAIN = '''\
"""A trial."""
from __future__ import annotations
import math


class Net:
    def __init__(self, size=3):
        """@nni.variable(nni.choice(2, 3, 5), name=self.size)"""
        self.size = size
        """@nni.variable(nni.choice("relu", math.tanh, -1),
                         name=self.act)"""
        self.act = [
            "relu",
        ]

    def run(self, x):
        """@nni.function_choice(math.sqrt(x), math.exp(x), name=math.sqrt)"""
        y = 1 + float(math.sqrt(x))  # é: an offset in bytes
        return y


def main():
    """@nni.get_next_parameter()"""
    \'\'\'@nni.variable(nni.uniform(0.1, 0.5), name=rate)\'\'\'
    rate = 0.2
    """@nni.report_intermediate_result(rate)"""
    """@nni.report_final_result(
        {"default": rate,
         "more": 1})"""
    raise SystemExit(rate)
'''

SPACE = {
    "train/self.size/choice": {"_type": "choice", "_value": [2, 3, 5]},
    "train/self.act/choice": {"_type": "choice", "_value": ["relu", "math.tanh", "-1"]},
    "train/math.sqrt/function_choice": {
        "_type": "choice",
        "_value": ["math.sqrt(x)", "math.exp(x)"],
    },
    "train/rate/uniform": {"_type": "uniform", "_value": [0.1, 0.5]},
}


def test_the_search_space_has_nnis_keys_and_values() -> None:
    space, _ = keyed("train", expanded(TRAIN))
    assert space == SPACE


def test_the_code_asks_for_the_values_line_by_line() -> None:
    _, code = keyed("train", expanded(TRAIN))
    before, after = TRAIN.splitlines(), code.splitlines()
    assert len(before) == len(after)
    compile(code, "train.py", "exec")
    assert after[1] == "from __future__ import annotations; import nni"
    line = before.index("        self.size = size")
    assert after[line] == (
        "        self.size = nni.choice({2: 2, 3: 3, 5: 5}, "
        "name='self.size', key='train/self.size/choice')"
    )
    (root,) = [one for one in after if "1 + float(" in one]
    assert "1 + float(nni.function_choice({'math.sqrt(x)': lambda: math.sqrt(x)," in root
    assert root.endswith(")  # é: an offset in bytes")
    assert after[-1] == before[-1]
    assert ast.get_docstring(ast.parse(code)) == "A trial."


ASKS = "def f():\n    '''@nni.get_next_parameter()'''\n"


@pytest.mark.parametrize(
    "code,begins",
    [
        ("x = 1\n'''@nni.report_final_result(x)'''\n", "import nni; x = 1"),
        (f"#!/bin/sh\n{ASKS}", "#!/bin/sh\nimport nni\ndef"),
        (f"# 1\n# 2\n# 3\n@d\n{ASKS}", "# 1\n# 2\nimport nni\n@d"),
    ],
)
def test_nni_is_imported_before_it_is_needed(code: str, begins: str) -> None:
    assert expanded(code).startswith(begins)


def test_code_without_annotations_stays_as_it_is() -> None:
    code = "import nni\n# nni.choice(1)\nprint( 'a' )\n"
    assert expanded(code) == code
    assert keyed("m", code) == ({}, code)


def test_parameters_written_by_hand_are_named_by_their_line() -> None:
    code = "import nni\nx = nni.choice(1, 2)\ny = nni.qlognormal(1.2, 3, 4.5)\n"
    space, rewritten = keyed("m", code)
    assert space == {
        "m/__line2/choice": {"_type": "choice", "_value": [1, 2]},
        "m/__line3/qlognormal": {"_type": "qlognormal", "_value": [1.2, 3, 4.5]},
    }
    assert "x = nni.choice({1: 1, 2: 2}, key='m/__line2/choice')" in rewritten


def test_a_choice_within_a_choice() -> None:
    code = "import nni\nx = nni.function_choice(f(nni.choice(1, 2, name='a')), g(), name='f')\n"
    space, rewritten = keyed("m", code)
    assert set(space) == {"m/a/choice", "m/f/function_choice"}
    compile(rewritten, "m", "exec")


def test_the_page_names_every_annotation() -> None:
    said = {*annotations.SAID_AS_IT_IS, *annotations.OF_THE_NEXT}
    assert set(ANNOTATIONS) == {*said, "mutable_layers", "training_update"}


LAYERS = '''\
def main():
    images = 5
    """@nni.mutable_layers(
    {
        layer_choice: [add_one(), add_two(by=2)],
        optional_inputs: [images],
        optional_input_size: 1,
        layer_output: first
    },
    {
        layer_choice: [add_one()],
        fixed_inputs: [first],
        optional_inputs: [images, first],
        optional_input_size: [0, 1],
        layer_output: second
    })"""
    return second
'''


def test_mutable_layers_are_a_type_of_their_own_for_tuners_of_nnis() -> None:
    space, code = keyed("net", expanded(LAYERS))
    (key,) = space
    assert key == "net/mutable_block_16"
    assert space[key]["_value"]["mutable_layer_0"] == {
        "layer_choice": ["add_one()", "add_two(by=2)"],
        "optional_inputs": ["images"],
        "optional_input_size": 1,
    }
    assert len(code.splitlines()) == len(LAYERS.splitlines()) + 1  # nothing stands above 'def'
    assert "first = nni.mutable_layer('net/mutable_block_16', 'mutable_layer_0'" in code
    assert "{'add_one()': {}, 'add_two(by=2)': {'by': 2}}" in code


def test_and_plain_choices_for_ours(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(LAYERS)
    space = annotated_space(tmp_path, flat=True)
    base = "net/mutable_block_16/mutable_layer_1"
    assert space[f"{base}/layer_choice"]["_value"] == ["add_one()"]
    assert space[f"{base}/optional_inputs"]["_value"] == [[], ["images"], ["first"]]


WRONG = {
    "import nni\nx = nni.choice(*options)\n": "without a star",
    "'''@nni.variable(nni.choice(1, 2), name=y)'''\nx = 1\n": "about y, and x follows",
    "'''@nni.variable(nni.choice(1, 2), name=x)'''\n": "annotates nothing",
    "'''@nni.variable(nni.choice(1, 2), name=x)'''\nprint()\n": "no assignment",
    "'''@nni.variable(3, name=x)'''\nx = 1\n": "takes one of nni.choice",
    "'''@nni.variable(nni.choice(1, 2))'''\nx = 1\n": "one keyword, 'name'",
    "'''@nni.variable(nni.choice(1,)'''\nx = 1\n": "cannot be read",
    "'''@nni.function_choice(f(), g(), name=f)'''\nx = h()\n": "none of its calls",
    "'''@nni.no_such_thing()'''\n": "is no annotation",
    "'''@nni.mutable_layers({layer_choice: [f()]})'''\n": "needs layer_output",
    "'''@nni.variable(nni.uniform(low, 2), name=x)'''\nx = 1\n": "numbers that are written out",
    "'''@nni.variable(nni.uniform(1), name=x)'''\nx = 1\n": "takes 2 numbers, not 1",
    "import nni\nx = nni.choice(1, 2, name='a'); y = nni.choice(1, 3, name='a')\n": "as well",
    "import nni\nx = nni.choice(1, 2) + nni.choice(1, 2)\n": "stand in one line",
    "print 'nni.x'\n": "no Python",
}


@pytest.mark.parametrize("code", WRONG)
def test_what_cannot_be_honoured_is_named_with_its_line(tmp_path: Path, code: str) -> None:
    with pytest.raises(Unreadable, match=WRONG[code]):
        keyed("m", expanded(code))
    (tmp_path / "m.py").write_text(code)
    with pytest.raises(BadAnnotation) as refused:
        annotated_space(tmp_path)
    assert refused.value.where.startswith(f"{tmp_path}/m.py:")


def test_a_folder_is_rewritten_in_place_in_its_own_encoding(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    text = "# -*- coding: latin-1 -*-\r\nname = 'é'\r\n'''@nni.report_final_result(1)'''\r\n"
    (tmp_path / "deep" / "m.py").write_bytes(text.encode("latin-1"))
    (tmp_path / "data.py").write_bytes(b"\xff\xfe not python")
    rewrite_annotated(tmp_path)
    said = (tmp_path / "deep" / "m.py").read_bytes().decode("latin-1")
    assert said == "# -*- coding: latin-1 -*-\nimport nni; name = 'é'\nnni.report_final_result(1)\n"
    assert (tmp_path / "data.py").read_bytes() == b"\xff\xfe not python"


ANNOTATED = V1.replace("searchSpacePath: space.json\n", "").replace(
    "useAnnotation: false", "useAnnotation: true"
)


def test_a_file_takes_its_search_space_from_the_code(files: Files) -> None:
    (files.folder / "code" / "train.py").write_text(TRAIN)
    config = files.load(ANNOTATED)
    assert config.use_annotation
    assert config.search_space == SPACE


def test_a_file_with_a_space_of_its_own_is_refused(files: Files) -> None:
    (error,) = files.errors(V1.replace("useAnnotation: false", "useAnnotation: true"))
    assert error.startswith("e.yml:8:16: 'useAnnotation' takes the search space from the code")


def test_code_without_annotations_and_wrong_ones_are_refused(files: Files) -> None:
    (error,) = files.errors(ANNOTATED)
    assert "no annotation of a parameter is in" in error
    (files.folder / "code" / "train.py").write_text("'''@nni.variable(nni.choice(1), name=x)'''\n")
    (error,) = files.errors(ANNOTATED)
    assert error.startswith("code/train.py:1: @nni.variable annotates nothing")


def test_a_converted_file_says_so_too(files: Files) -> None:
    (files.folder / "code" / "train.py").write_text(TRAIN)
    text = converted(files.write(ANNOTATED))
    assert text is not None
    assert "useAnnotation: true" in text
    assert files.load(text).search_space == SPACE
