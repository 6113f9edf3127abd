"""No function of the product is longer than a screen.

Measured is what a reader has to keep in mind, from the first statement to the last: a signature
with its types and a docstring that explains each argument make a function longer and not harder.

``python -m tests.arch.test_bodies`` says which are the longest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.arch.trees import nodes_of

ROOT = Path(__file__).parents[2]
PRODUCT = ("bequeath", "dispatcher", "nfs_setup", "trial_runtime", "tuners")
MOST_LINES = 60


def test_bodies_fit_on_a_screen() -> None:
    """Mutation: a function grows by one more case, until nobody sees its end."""
    long = {name: lines for name, lines in bodies_of_the_product() if lines > MOST_LINES}
    assert not long, "name what its parts do, and make them functions"


def test_signature_and_docstring_are_not_counted() -> None:
    text = """
class A:
    def f(
        self,
        x: int,
    ) -> int:
        \"\"\"Return it.

        Args:
            x: it.
        \"\"\"
        # a comment before the first statement is none of it
        def g() -> int:
            return (
                x
            )

        return g()

    async def only_explained(self) -> None:
        \"\"\"Do nothing.\"\"\"
"""
    assert dict(bodies(text)) == {"f": 6, "g": 3, "only_explained": 0}


def bodies_of_the_product() -> Iterator[tuple[str, int]]:
    """The lines of each function's body, by file and name; the longest of one name counts."""
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            where = path.relative_to(ROOT).as_posix()
            found = sorted(bodies(path.read_text()), key=lambda one: one[1])
            yield from ((f"{where} {name}", lines) for name, lines in found)


def bodies(text: str) -> Iterator[tuple[str, int]]:
    """The lines of each function's body in a module, without signature and docstring."""
    for node in nodes_of(text):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        statements = node.body[ast.get_docstring(node) is not None :]
        if statements:
            last = statements[-1].end_lineno or 0
            first = min(statements[0].lineno, *_decorated(statements[0]))
            yield node.name, last - first + 1
        else:
            yield node.name, 0


def _decorated(statement: ast.stmt) -> Iterator[int]:
    """The lines of a statement and of its decorators, which stand before it."""
    yield statement.lineno
    yield from (one.lineno for one in getattr(statement, "decorator_list", ()))


if __name__ == "__main__":
    for name, lines in sorted(bodies_of_the_product(), key=lambda one: -one[1])[:25]:
        print(f"{lines:4} {name}")
