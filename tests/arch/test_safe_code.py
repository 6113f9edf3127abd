"""What no module of the product may do: run what it reads, or hand text to a shell.

Whatever arrives by wire, disk or file is data. Each exception is named here, with its place
and its reason.
"""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest

from tests.arch.trees import nodes_of

ROOT = Path(__file__).parents[2]
PACKAGES = ("bequeath", "dispatcher", "nfs_setup", "trial_runtime", "tuners")

#: Modules that make code of bytes, or share that trait.
UNSAFE_MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
}

#: Functions that do, by the name they are called under.
UNSAFE_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "yaml.load",
    "yaml.unsafe_load",
    "yaml.full_load",
    "numpy.load",
    "np.load",
    "torch.save",
}

#: (file, what) → why it is right there.
ALLOWED: dict[tuple[str, str], str] = {
    (
        "trial_runtime/weights/loading/torch_file.py",
        "import pickle",
    ): "the name of the error torch raises",
    (
        "dispatcher/notebook/sources.py",
        "compile",
    ): "a cell's text is compared with the code that its user has run, and not run here",
}

#: Where a user's own text goes to bash; nothing of ours is ever pasted into it.
SHELLS = {
    "trial_runtime/agent/runners/fresh.py",
    "dispatcher/platforms/ssh/machine.py",
    # Of a container that is not here: a script of ours, whose every word is quoted.
    "dispatcher/platforms/google_cloud/jobs.py",
}


def product() -> list[Path]:
    return sorted(path for folder in PACKAGES for path in (ROOT / folder).rglob("*.py"))


def found_in(text: str) -> set[str]:
    """Each thing that is not done here, in a word or two."""
    return {what for node in nodes_of(text) for what in _of(node)}


def _of(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [f"import {n.name}" for n in names if n.name.split(".")[0] in UNSAFE_MODULES]
        case ast.ImportFrom(module=str(module)) if module.split(".")[0] in UNSAFE_MODULES:
            return [f"import {module}"]
        case ast.Call():
            return _of_call(node)
        case _:
            return []


def _of_call(call: ast.Call) -> list[str]:
    name = ast.unparse(call.func)
    found = [name] if name in UNSAFE_CALLS else []
    keywords = {k.arg: k.value for k in call.keywords}
    shell = keywords.get("shell")
    # A shell by its name: ``shell=`` is an argument of subprocess with a constant true value.
    if isinstance(shell, ast.Constant) and shell.value is True:
        found.append("shell=True")
    if name.rpartition(".")[2] == "YAML" and "typ" in keywords:
        typ = keywords["typ"]
        if not (isinstance(typ, ast.Constant) and typ.value in ("safe", "rt")):
            found.append("YAML(typ=unsafe)")
    if name == "torch.load":
        only = keywords.get("weights_only")
        if not (isinstance(only, ast.Constant) and only.value is True):
            found.append("torch.load without weights_only=True")
    if "allow_pickle" in keywords:
        allows = keywords["allow_pickle"]
        if not (isinstance(allows, ast.Constant) and allows.value is False):
            found.append("allow_pickle")
        elif found == ["numpy.load"]:
            found.clear()
    return found


def shells_in(text: str) -> bool:
    """Whether a list is made that begins a shell with a text: ``["bash", "-c", …]``."""
    for node in nodes_of(text):
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) >= 2:
            words = [e.value if isinstance(e, ast.Constant) else None for e in node.elts]
            for first, second in itertools.pairwise(words):
                shell = isinstance(first, str) and first.rpartition("/")[2] in ("sh", "bash")
                if shell and isinstance(second, str) and second.startswith("-") and "c" in second:
                    return True
    return False


@pytest.mark.parametrize("path", product(), ids=lambda p: str(p.relative_to(ROOT)))
def test_nothing_that_is_read_is_run(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    found = {what for what in found_in(path.read_text()) if (name, what) not in ALLOWED}
    assert not found, "data stays data; or name the exception, and its reason, above"


def test_one_place_has_a_shell() -> None:
    names = {str(p.relative_to(ROOT)) for p in product() if shells_in(p.read_text())}
    assert names == SHELLS


def test_the_exceptions_are_still_needed() -> None:
    for name, what in ALLOWED:
        assert what in found_in((ROOT / name).read_text())


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "def f():\n    from pickle import loads",
        "import dill.source",
        "eval('1')",
        "exec(code)",
        "import os\nos.system('ls')",
        "subprocess.run('ls', shell=True)",
        "torch.load(file)",
        "torch.load(file, weights_only=False)",
        "np.load(file, allow_pickle=True)",
        "np.save(file, array, allow_pickle=maybe)",
        "numpy.load(file)",
        "yaml.load(text)",
        "YAML(typ='unsafe')",
    ],
)
def test_the_rule_bites(text: str) -> None:
    assert found_in(text)


def test_the_rule_leaves_the_rest_alone() -> None:
    assert not found_in("import re\nre.compile('x')\nmodel.eval()\nYAML(typ='safe')\n")
    assert not found_in("numpy.load(file, allow_pickle=False)\nnumpy.load('x', allow_pickle=False)")
    assert not found_in("torch.load(file, weights_only=True)\nsubprocess.run(['ls'])\n")
    assert shells_in("['bash', '-c', text]")
    assert shells_in("[*before, '/bin/sh', '-ec', text]")
    assert not shells_in("['git', '-c', 'x']")
