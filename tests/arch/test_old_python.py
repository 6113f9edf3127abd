"""What travels to other machines runs with the Python that they have: 3.9 or later.

The syntax is read as 3.9 reads it, and what later versions brought is known by name here; where a
``python3.9`` is at hand (or ``PYTHON39`` names one), it says itself what it has not.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.old_python import WHY_NOT, old_python

ROOT = Path(__file__).parents[2]

#: Folders whose modules are run by other machines' Pythons.
TRAVELS = ("bequeath", "trial_runtime", "dispatcher/remote_python/on_host", "nfs_setup")

#: Modules that travel alone.
ALONE = (
    "dispatcher/platforms/google_cloud/in_job.py",
    "dispatcher/platforms/nsml/in_run.py",
)

#: What a module has only in later versions, by what is imported from where.
LATER = {
    "datetime": {"UTC"},
    "enum": {"StrEnum", "ReprEnum"},
    "itertools": {"pairwise", "batched"},
    "contextlib": {"aclosing", "chdir"},
    "inspect": {"get_annotations"},
    "sys": {"orig_argv", "stdlib_module_names", "exception"},
    "types": {"NoneType", "EllipsisType", "UnionType"},
    "typing": {
        "Concatenate",
        "LiteralString",
        "Never",
        "NotRequired",
        "ParamSpec",
        "Required",
        "Self",
        "TypeAlias",
        "TypeGuard",
        "Unpack",
        "assert_never",
        "assert_type",
        "override",
    },
    "tomllib": {"*"},
}
BUILTINS = {"ExceptionGroup", "BaseExceptionGroup", "aiter", "anext", "EncodingWarning"}
METHODS = {"add_note", "bit_count", "hardlink_to", "walk"}
KEYWORDS = {"zip": {"strict"}, "dataclass": {"slots", "kw_only"}, "rmtree": {"dir_fd", "onexc"}}

#: What msgspec reads at run time, however late annotations are evaluated.
READ_LATER = {"Struct", "Message"}


def travelling() -> list[Path]:
    whole = [path for folder in TRAVELS for path in (ROOT / folder).rglob("*.py")]
    return sorted([*whole, *(ROOT / each for each in ALONE)])


def too_new(text: str) -> list[str]:
    """What Python 3.9 cannot do with a module."""
    try:
        tree = ast.parse(text, feature_version=(3, 9))
    except SyntaxError as error:
        return [f"{error.lineno}: {error.msg}"]
    found = list(_in(tree))
    return [f"{node.lineno}: {what}" for node, what in found]  # type: ignore[attr-defined]


def _in(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    for node in _walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)):
                late = LATER.get(module, set())
                yield from ((node, n.name) for n in node.names if n.name in late or "*" in late)
            case ast.Import():
                yield from ((node, n.name) for n in node.names if "*" in LATER.get(n.name, ()))
            case ast.Name(id=name) if name in BUILTINS:
                yield node, name
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                if name in LATER.get(module, ()) or (name in METHODS and module != "os"):
                    yield node, f"{module}.{name}"
            case ast.Call(func=func):
                name = ast.unparse(func).rpartition(".")[2]
                known = KEYWORDS.get(name, set())
                yield from ((node, f"{name}({k.arg}=)") for k in node.keywords if k.arg in known)
                if name in ("isinstance", "issubclass") and isinstance(node.args[1], ast.BinOp):
                    yield node, "a union as a class"
            case ast.Assign(value=value) if _is_union(value):
                yield node, "a union that is worked out at once"
            case ast.ClassDef(bases=bases):
                if {ast.unparse(base).rpartition(".")[2] for base in bases} & READ_LATER:
                    yield from ((x, "X | Y in a struct: Optional or Union") for x in _unions(node))


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those for type checkers only, and for later versions only."""
    if isinstance(tree, ast.If):
        test = ast.unparse(tree.test)
        if test == "TYPE_CHECKING" or test.startswith("sys.version_info >= "):
            for each in tree.orelse:
                yield from _walk(each)
            return
    yield tree
    for child in ast.iter_child_nodes(tree):
        yield from _walk(child)


def _is_union(value: ast.AST) -> bool:
    """Whether a value has an ``X | None`` in it, which later versions take for a type."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.BitOr)
        and any(isinstance(s, ast.Constant) and s.value is None for s in (node.left, node.right))
        for node in ast.walk(value)
    )


def _unions(struct: ast.ClassDef) -> Iterator[ast.AST]:
    for field in struct.body:
        if isinstance(field, ast.AnnAssign):
            for node in ast.walk(field.annotation):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
                    yield node


@pytest.mark.parametrize("path", travelling(), ids=lambda p: str(p.relative_to(ROOT)))
def test_python_39_can_do_it(path: Path) -> None:
    assert not too_new(path.read_text())


@pytest.mark.parametrize(
    "text",
    [
        "match x:\n    case 1: pass",
        "try:\n    pass\nexcept* OSError:\n    pass",
        "type X = int",
        "def f[T](x: T) -> T: ...",
        "from datetime import UTC",
        "import datetime\ndatetime.UTC",
        "from typing import Any, TypeAlias",
        "import tomllib",
        "zip(a, b, strict=True)",
        "@dataclass(frozen=True, slots=True)\nclass A: ...",
        "isinstance(x, int | str)",
        "class A(msgspec.Struct, frozen=True):\n    x: int | None = None",
        "class A(Message):\n    x: dict[str, int | None]",
        "Holding = dict[str, int | None]",
        "raise ExceptionGroup('', [])",
        "error.add_note('')",
    ],
)
def test_the_rule_bites(text: str) -> None:
    assert too_new(text)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: int | None) -> int | str: ...",
        "class A(msgspec.Struct):\n    x: Optional[int] = None",
        "if TYPE_CHECKING:\n    from typing import TypeAlias",
        "if sys.version_info >= (3, 11):\n    shutil.rmtree(x, dir_fd=1)",
        "flags = os.O_RDONLY | os.O_CLOEXEC\nos.walk('.')",
    ],
)
def test_the_rule_leaves_the_rest_alone(text: str) -> None:
    assert not too_new(text)


def test_annotations_are_left_unread() -> None:
    late = "from __future__ import annotations"
    unions = [p for p in travelling() if " | " in p.read_text() and late not in p.read_text()]
    assert not unions


def test_an_old_python_has_all_that_is_used_of_its_library() -> None:
    python = old_python()
    if python is None:
        pytest.skip(WHY_NOT)
    reader = ROOT / "tests" / "support" / "stdlib_names.py"
    done = subprocess.run(
        [python, str(reader), *map(str, travelling())],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
