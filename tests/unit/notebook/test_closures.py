"""Functions in functions, decorators and lambdas of cells work in another process."""

from __future__ import annotations

import pytest

from dispatcher.errors import UserError
from tests.unit.notebook.cells import Cells, Elsewhere


def test_variables_around_a_function_come_along(cells: Cells, elsewhere: Elsewhere) -> None:
    cells.run("import numpy as np\nSCALE = 10\ndef scaled(x):\n    return x * SCALE\n")
    names = cells.run(
        "def make(n):\n"
        "    table = np.arange(n)\n"
        "    text = '''first\n"
        "    second'''\n"
        "    def helper(x):\n"
        "        inner = '''kept\n"
        "        as it is'''\n"
        "        return scaled(x) + table.sum(), text, inner\n"
        "    def trial(p):\n"
        "        return helper(p['x'])\n"
        "    return trial\n"
        "trial = make(4)\n"
    )
    there = elsewhere.names(names["trial"])["trial"]
    assert there({"x": 2}) == names["trial"]({"x": 2}) == (
        26, "first\n    second", "kept\n        as it is",
    )  # fmt: skip


def test_names_in_functions_hide_no_globals(cells: Cells, elsewhere: Elsewhere) -> None:
    """Mutation: variables around a function become globals of the module."""
    cells.run("n = 'global'\ndef show():\n    return n\n")
    names = cells.run(
        "def make(n):\n    def trial(p):\n        return n, show()\n    return trial\n"
        "one = make(1)\ntwo = make(2)\n"
        "def trial(p):\n    return one(p), two(p)\n"
    )
    there = elsewhere.names(names["trial"])["trial"]
    assert there({}) == ((1, "global"), (2, "global"))


def test_state_that_functions_share_stays_shared(cells: Cells, elsewhere: Elsewhere) -> None:
    """Mutation: each gets a copy; or `nonlocal` is an error."""
    names = cells.run(
        "def make():\n"
        "    count = 0\n"
        "    def step():\n"
        "        nonlocal count\n"
        "        count += 1\n"
        "    def trial(p):\n"
        "        step()\n"
        "        step()\n"
        "        return count\n"
        "    return trial\n"
        "trial = make()\n"
    )
    assert elsewhere.names(names["trial"])["trial"]({}) == 2


def test_inner_functions_that_call_each_other(cells: Cells, elsewhere: Elsewhere) -> None:
    names = cells.run(
        "def make():\n"
        "    def even(n):\n        return n == 0 or odd(n - 1)\n"
        "    def odd(n):\n        return n != 0 and even(n - 1)\n"
        "    def fact(n):\n        return 1 if n < 2 else n * fact(n - 1)\n"
        "    return lambda: (even, odd, fact)\n"
        "even, odd, fact = make()()\n"
        "def trial(p):\n    return even(p), odd(p), fact(p)\n"
    )
    assert elsewhere.names(names["trial"])["trial"](4) == (True, False, 24)


def test_functions_of_several_makers(cells: Cells, elsewhere: Elsewhere) -> None:
    names = cells.run(
        "def power(n):\n    def run(x):\n        return x ** n\n    return run\n"
        "def make(first, second):\n"
        "    def trial(p):\n        return first(p) + second(p)\n    return trial\n"
        "trial = make(power(2), power(3))\n"
    )
    assert elsewhere.names(names["trial"])["trial"](2) == 12


def test_decorators_and_caches(cells: Cells, elsewhere: Elsewhere) -> None:
    cells.run(
        "import functools\n"
        "def twice(f):\n"
        "    @functools.wraps(f)\n"
        "    def wrapper(*args):\n        return 2 * f(*args)\n"
        "    return wrapper\n"
        "def plain(f):\n"
        "    def wrapper(p):\n        return f(p) + 100\n"
        "    return wrapper\n"
    )
    names = cells.run(
        "@functools.lru_cache\ndef table(n):\n    return n + 1\n"
        "@twice\ndef helper(x):\n    return table(x)\n"
        "@plain\ndef trial(p):\n    return helper(p)\n"
    )
    written = elsewhere.names(names["trial"])
    assert written["wrapper"](3) == names["trial"](3) == 108


def test_a_small_lambda_may_help(cells: Cells, elsewhere: Elsewhere) -> None:
    names = cells.run(
        "add, double = lambda x: x + 1, lambda x: x * 2\n"
        "by = {'add': None}\n"
        "def trial(p):\n    return double(add(p))\n"
    )
    assert elsewhere.names(names["trial"])["trial"](3) == 8


def test_classes_of_cells(cells: Cells, elsewhere: Elsewhere) -> None:
    cells.run(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Point:\n    x: int\n    far: Unknown | None = None\n"
    )
    names = cells.run(
        "def make(offset):\n"
        "    class Shifted(Point):\n"
        "        def get(self):\n            return self.x + offset\n"
        "    return Shifted\n"
        "Shifted = make(5)\n"
        "CLASSES = {'p': Point, 's': Shifted}\n"
        "def trial(p):\n    return CLASSES['s'](p).get(), CLASSES['p'](2).x\n"
    )
    assert elsewhere.names(names["trial"])["trial"](1) == (6, 2)


def test_a_function_in_a_mapping(cells: Cells, elsewhere: Elsewhere) -> None:
    names = cells.run(
        "def relu(x):\n    return max(0, x)\n"
        "KINDS = {'relu': relu, 'abs': abs}\n"
        "def trial(p):\n    return KINDS['relu'](-1), KINDS['abs'](-1)\n"
    )
    assert elsewhere.names(names["trial"])["trial"]({}) == (0, 1)


def test_defaults_of_a_cell_are_data(cells: Cells, elsewhere: Elsewhere) -> None:
    names = cells.run(
        "import numpy as np\nX = np.ones(2)\ndef trial(p, x=X):\n    return x.sum()\n"
    )
    assert elsewhere.names(names["trial"])["trial"]({}) == 2


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "def make():\n    k = 3\n    def trial(p, k=k):\n        return k\n    return trial\n"
            "trial = make()\n",
            "uses 'k' of the function around it where it is defined",
        ),
        (
            "def make():\n    def trial(p):\n        return late\n    if 0:\n        late = 1\n"
            "    return trial\ntrial = make()\n",
            "variable 'late' of the function around it, which has no value",
        ),
        (
            "def make():\n    import threading\n    lock = threading.Lock()\n"
            "    def trial(p):\n        return lock\n    return trial\ntrial = make()\n",
            "'trial' uses the variable around it 'lock' (lock), which another process",
        ),
        (
            "def trial(p):\n    return TABLE\nTABLE = {'self': trial}\n",
            "it holds 'trial', which uses it",
        ),
        (
            "def trial(p):\n    return 1\nfirst = trial\ndel trial\ntrial = eval('lambda p: 1')\n",
            "",
        ),
        ("async def trial(p):\n    return 1\n", "is an async function"),
        ("def trial(p):\n    yield 1\n", "is a generator"),
        ("def trial(a, b):\n    return 1\n", "takes a, b, and gets one argument"),
        ("def trial(p, *, q):\n    return 1\n", "takes p, q, and gets one argument"),
        ("trial = 3\n", "an object of int"),
        ("trial = print\n", "an object of builtin_function_or_method"),
        ("class trial:\n    pass\n", "is no function"),
    ],
)
def test_what_cannot_be_had_is_one_clear_error(
    text: str, message: str, cells: Cells, elsewhere: Elsewhere
) -> None:
    from dispatcher.notebook.function_source import check_stands_alone, module_source

    names = cells.run(text)
    with pytest.raises(UserError) as refused:
        module_source(check_stands_alone(names["trial"], "trial"))
    assert message in refused.value.message
    assert refused.value.hint


def test_modules_below_a_module_are_imported(cells: Cells, elsewhere: Elsewhere) -> None:
    """Mutation: `import xml.dom.minidom` of a cell becomes `import xml`."""
    names = cells.run(
        "import xml.dom.minidom\n"
        "def trial(p):\n"
        "    return xml.dom.minidom.parseString('<a/>').documentElement.tagName\n"
    )
    text = elsewhere.write(names["trial"]).read_text()
    assert "import xml.dom.minidom as _bequeath_imported\n" in text
