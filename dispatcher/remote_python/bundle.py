"""A package as bytes that any Python from 3.9 on runs on another machine, without installing it.

The code goes in by the program's input, with its digest on the command line, and is imported from
memory: no file and no name in ``/tmp`` is there for somebody else to take, nothing has to be
cleared up when a connection or a machine dies half way, and root (where sudo calls it) runs what
came over the connection rather than what lies in a user's folder.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import zlib
from dataclasses import dataclass
from pathlib import Path

from dispatcher.remote_python import on_host
from trial_runtime import attempt_folder

#: The oldest Python that runs what travels, and trials.
OLDEST = (3, 9)

#: Exit code of an older one, which answers ``{"too_old": [3, 6, 8], "executable": PATH}``.
TOO_OLD = 3

#: Before every program of ours. ASCII, and written for any Python 3, so that an old one can say so.
#: Arguments: the digest of the code, then how many bytes of stdin it has, or ``=`` and the code
#: itself in base64, then those of the program.
START = """\
import os, sys
# The folder that it is called in shadows nothing, nor one that PYTHONPATH names from there (as ""
# or "."), which Python has made a whole path of by now: trials run elsewhere.
named = os.environ.get("PYTHONPATH", "")
named = named.split(os.pathsep) if named else []
here = [os.path.abspath(p) for p in named if not os.path.isabs(p)]
sys.path[:] = [p for p in sys.path if p and (p in named or p not in here)]
sys.dont_write_bytecode = True
import base64, hashlib, json, zlib
if sys.version_info < (3, 9):
    print(json.dumps({"too_old": list(sys.version_info[:3]), "executable": sys.executable}))
    sys.exit(3)
from importlib import import_module
from importlib.machinery import ModuleSpec
digest, given = sys.argv[1:3]
if given[:1] == "=":
    code = base64.b64decode(given[1:])
else:
    code = sys.stdin.buffer.read(int(given))
if hashlib.sha256(code).hexdigest() != digest:
    sys.exit("the code did not arrive whole")
code = json.loads(zlib.decompress(code).decode("ascii"))
modules = code["modules"]
class Bundle:
    def find_spec(self, name, path=None, target=None):
        if name in modules:
            return ModuleSpec(name, self, origin="bequeath", is_package=modules[name]["package"])
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        name = module.__name__
        exec(compile(modules[name]["text"], "<%s>" % name, "exec"), module.__dict__)
sys.meta_path.insert(0, Bundle())
sys.argv[:3] = ["bequeath"]
sys.exit(import_module(code["main"]).main())
"""


#: Runs one module of ours that imports nothing of ours. Arguments: the module, and an environment
#: variable for it by name and value, the module and the value in base64.
ALONE = """\
import base64, os, sys, zlib
code, name, value = sys.argv[1:]
os.environ[name] = base64.b64decode(value).decode()
module = {"__name__": "bequeath"}
exec(zlib.decompress(base64.b64decode(code)), module)
sys.exit(module["main"]())
"""


@dataclass(frozen=True)
class Bundle:
    """A package, packed. Its ``__main__`` has a function ``main``, which returns an exit code."""

    code: bytes

    def arguments(self, *arguments: str, alone: bool = True) -> list[str]:
        """The arguments of a Python that runs it; its stdin begins with :attr:`code`.

        Args:
            arguments: those of the program.
            alone: nothing in PYTHONPATH or a user's site takes the place of a module. False for
                a program that is to see the modules that trials see.
        """
        return self._arguments(str(len(self.code)), arguments, alone)

    def arguments_with_code(self, *arguments: str, alone: bool = True) -> list[str]:
        """The arguments of a Python that runs it and leaves all of its stdin to the program.

        Args:
            arguments: those of the program.
            alone: see :meth:`arguments`.
        """
        return self._arguments(f"={base64.b64encode(self.code).decode()}", arguments, alone)

    def _arguments(self, given: str, arguments: tuple[str, ...], alone: bool) -> list[str]:
        digest = hashlib.sha256(self.code).hexdigest()
        return [*(["-I"] if alone else []), "-c", START, digest, given, *arguments]


@functools.cache
def bundle_of(
    root: Path, *, without: tuple[str, ...] = (), also: tuple[tuple[str, Path], ...] = ()
) -> Bundle:
    """Pack a package; the same bytes for the same code. Reads all of it, once in a process.

    Args:
        root: its folder, whose name is that of the package there.
        without: parts that stay here, as names in the folder.
        also: modules that lie elsewhere, by the name that each has in the package there.
    """
    modules = {
        f"{root.name}.{name}": {"package": False, "text": path.read_text(encoding="utf-8")}
        for name, path in also
    }
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if inside.parts[0] in without:
            continue
        package = path.name == "__init__.py"
        parts = [root.name, *inside.with_suffix("").parts][: -1 if package else None]
        text = path.read_text(encoding="utf-8")
        modules[".".join(parts)] = {"package": package, "text": text}
    document = {"main": f"{root.name}.__main__", "modules": modules}
    return Bundle(zlib.compress(json.dumps(document, sort_keys=True).encode("ascii"), 9))


def module_alone(path: Path, variable: str, value: str) -> list[str]:
    """Return the arguments of a Python that runs ``main`` of one module and leaves all of its stdin
    to it. They are short: some kilobytes, for a way on which a command is part of an address.

    Args:
        path: of the module, which imports the standard library alone.
        variable: an environment variable that it gets.
        value: of the variable. Whoever sees the command line sees it.
    """
    code = base64.b64encode(zlib.compress(path.read_bytes(), 9)).decode()
    return ["-I", "-c", ALONE, code, variable, base64.b64encode(value.encode()).decode()]


def our_programs() -> Bundle:
    """The programs of :mod:`dispatcher.remote_python.on_host`, and the verb ``files``, whose code
    agents have, too."""
    also = (("files", Path(attempt_folder.__file__)),)
    return bundle_of(Path(on_host.__file__).parent, also=also)
