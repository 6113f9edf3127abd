"""Each failpoint is listed once, stands once in the product, and is one that a test kills at."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from tests.arch.trees import nodes_of
from tests.faults.cases import CASES, CREATION, TAKE_OVER, UPDATING
from trial_runtime.failpoints import NAMES

ROOT = Path(__file__).parents[2]
PACKAGES = ("bequeath", "dispatcher", "nfs_setup", "trial_runtime", "tuners")


def patterns_in(source: str) -> list[str]:
    """What calls of ``failpoint`` name, as regular expressions; f-strings leave a gap."""
    found = []
    for node in nodes_of(source):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if node.func.id != "failpoint":
            continue
        (argument,) = node.args
        if isinstance(argument, ast.Constant):
            found.append(re.escape(str(argument.value)))
        else:
            assert isinstance(argument, ast.JoinedStr), "a failpoint's name is a literal"
            found.append(
                "".join(
                    re.escape(str(part.value)) if isinstance(part, ast.Constant) else "[a-z_]+"
                    for part in argument.values
                )
            )
    return found


def product_patterns() -> list[str]:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return [pattern for path in files for pattern in patterns_in(path.read_text())]


def test_each_name_stands_exactly_once_in_the_product() -> None:
    patterns = product_patterns()
    places = Counter(
        {name: sum(bool(re.fullmatch(pattern, name)) for pattern in patterns) for name in NAMES}
    )
    assert {name: n for name, n in places.items() if n != 1} == {}


def test_each_call_names_something_listed() -> None:
    unlisted = [
        pattern
        for pattern in product_patterns()
        if not any(re.fullmatch(pattern, name) for name in NAMES)
    ]
    assert unlisted == []


def test_each_name_has_a_test_that_kills_there() -> None:
    walked = {*CASES, *CREATION, *UPDATING, *TAKE_OVER}
    assert walked <= set(NAMES)
    here = Path(__file__).parent
    others = [p for p in (ROOT / "tests").rglob("test_*.py") if here not in p.parents]
    text = "".join(path.read_text() for path in others)
    assert [name for name in NAMES if name not in walked and name not in text] == []


def test_names_say_where_and_what() -> None:
    for name, meaning in NAMES.items():
        assert re.fullmatch(r"[a-z_]+(\.[a-z_]+){1,2}", name), name
        assert meaning
        assert not meaning.endswith(".")


def test_the_look_bites() -> None:
    assert patterns_in('failpoint("a.b")\nfailpoint(f"a.{x}.c")') == [r"a\.b", r"a\.[a-z_]+\.c"]
