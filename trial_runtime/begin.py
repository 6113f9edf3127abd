"""Begins an agent where nothing of ours is installed: ``python begin.py CONFIGFILE``.

One file, which is sent alone. It unpacks our runtime and the trials' code where they are not yet,
after a look at their digests, sees that the Python has the modules that we need, and becomes the
agent. Whoever cannot run one gets one line on stderr, and an exit code of ``sysexits.h``.

Python 3.6 reads all of it, so that an old one can say that it is.
"""

import contextlib
import errno
import fcntl
import hashlib
import importlib
import json
import os
import shutil
import sys
import tarfile
import tempfile
import time
import zipfile
import zlib
from importlib.util import find_spec
from typing import Any

#: The oldest Python that runs our code.
OLDEST = (3, 9)

#: This Python cannot run trials; an archive is damaged, or not there; a folder cannot be used; the
#: configuration cannot be read.
UNFIT, DAMAGED, MISSING, NO_FOLDER, NO_CONFIG = 64, 65, 66, 73, 78

#: Modules that the agent imports, and by the projects that have them all that our code needs.
OLDEST_MODULES = {"msgspec": (0, 18), "zmq": (22, 0)}
NEEDED = {"msgspec": "msgspec", "zmq": "pyzmq", "blake3": "blake3", "numpy": "numpy"}
USEFUL = ("filelock", "pynvml")

#: As :func:`trial_runtime.safe_path.module_arguments` has it for any Python.
AGENT = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; "
    "import runpy; runpy.run_module('trial_runtime.agent', None, '__main__', True)"
)

HERE = os.path.dirname(os.path.abspath(__file__))

#: Variables of :mod:`trial_runtime.carried`.
LAST, FIRST = "BEQUEATH_MODULES", "BEQUEATH_MODULES_FIRST"

#: How long another one that unpacks is waited for, a head that brings wheels, and an archive that
#: a file system may show late (seconds).
LOCK_S, WHEELS_S, LATE_S = 120.0, 120.0, 15.0

_CHUNK, _MOST_TEXT, _DAY_S = 1 << 20, 600, 86400


class Unfit(Exception):
    """Raised when no agent can run here.

    Args:
        code: the exit code.
        text: the line for people.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def main() -> int:
    """Become the agent; returns an exit code if that cannot be."""
    try:
        if sys.version_info < OLDEST:
            version = ".".join(str(each) for each in sys.version_info[:3])
            raise Unfit(UNFIT, f"{sys.executable} is Python {version}, trials need 3.9 or newer")
        if len(sys.argv) != 2:
            raise Unfit(NO_CONFIG, "one argument is expected: the path of a configuration")
        brought = read_brought(sys.argv[1])
        os.environ.update(fit(brought) if brought else {})
        os.execv(sys.executable, [sys.executable, "-c", AGENT, sys.argv[1]])  # noqa: S606 - no shell
    except Unfit as unfit:
        line = " ".join(str(unfit).split())[:_MOST_TEXT]
        sys.stderr.write(line + "\n")
        with contextlib.suppress(OSError, IndexError), open(sys.argv[1] + ".unfit", "w") as file:
            file.write(line)  # for who sees no output of ours; what is mounted for us has the line
        return unfit.code


def read_brought(path: str) -> Any:
    """Read what a configuration says of what is brought: ``AgentConfig.brought``, or nothing."""
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read().decode())
        brought = document.get("brought")
        if not brought:
            return None
        for name in ("runtime", "code"):
            archive = brought[name]
            archive["nbytes"] + archive.setdefault("parts", 0)
            if len(archive["digest"]) != 64 or not archive["digest"].isalnum():
                raise ValueError(f"{name} has no digest")
        brought["archives"] = brought.get("archives") or HERE
        if not os.path.isabs(brought["work"]):
            raise ValueError("its folder is not absolute")
    except OSError as error:
        raise Unfit(NO_CONFIG, f"{path} cannot be read: {error.strerror}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unfit(NO_CONFIG, f"{path} is no configuration of an agent: {error!r}") from error
    return brought


def fit(brought: Any) -> Any:
    """Put everything in its place; returns the agent's variables. Raises ``Unfit``."""
    work = brought["work"]
    runtime = os.path.join(work, "runtime", brought["runtime"]["digest"])
    code = os.path.join(work, "code", brought["code"]["digest"])
    try:
        for name in ("", "runtime", "code", "modules"):
            folder = os.path.join(work, name)
            os.makedirs(folder, 0o700, exist_ok=True)
            trouble = folder_trouble(folder, brought.get("alone"))
            if trouble:
                raise Unfit(NO_FOLDER, f"code is not put where others can change it: {trouble}")
        with alone(work):
            place(runtime, lambda part: unpack(brought, "runtime", part))
            place(code, lambda part: unpack(brought, "code", part))
            modules = bring_modules(brought, os.path.join(work, "modules", _tag()))
    except OSError as error:
        raise Unfit(NO_FOLDER, f"{error.filename or work} cannot be used: {error}") from error
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [runtime] + [each for each in named if each and each != runtime]
    return dict(modules, PYTHONPATH=os.pathsep.join(path))


@contextlib.contextmanager
def alone(work: str) -> Any:
    """Hold back others who would unpack the same, for some time: without that it is only twice the
    work, and file systems without locks are none the worse for it."""
    until = time.monotonic() + LOCK_S
    with open(os.path.join(work, ".beginning"), "ab") as file:
        while time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX + fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                    break
            time.sleep(0.1)
        yield


def place(tree: str, fill: Any) -> None:
    """Make a tree that appears whole or not at all, unless it is there.

    Args:
        tree: the folder to make.
        fill: called with a folder, in which it makes a folder ``tree``.
    """
    if os.path.isdir(tree):
        os.utime(tree)  # used, for those who remove what is not
        return
    parent = os.path.dirname(tree)
    os.makedirs(parent, 0o700, exist_ok=True)
    for name in os.listdir(parent):  # left half done by others, long ago
        path = os.path.join(parent, name)
        with contextlib.suppress(OSError):
            if name.startswith(".part-") and time.time() - os.stat(path).st_mtime > _DAY_S:
                shutil.rmtree(path, ignore_errors=True)
    part = tempfile.mkdtemp(prefix=".part-", dir=parent)
    try:
        fill(part)
        try:
            os.rename(os.path.join(part, "tree"), tree)
        except OSError:
            if not os.path.isdir(tree):  # somebody else was quicker: it is the same
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


def unpack(brought: Any, name: str, part: str) -> None:
    """Unpack an archive, once all of it is known to be the one that is meant.

    Args:
        brought: of the configuration.
        name: ``runtime`` or ``code``.
        part: a folder, in which it makes a folder ``tree``.
    """
    content = pieces(brought["archives"], brought[name])
    target = os.path.join(part, "tree", "trial_runtime" if name == "runtime" else "")
    os.makedirs(target, 0o755)
    with checked(content, brought[name], part, f"the archive of the {name}") as file:
        tar = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 - as long as its file
        if hasattr(tarfile, "data_filter"):
            setattr(tar, "extraction_filter", tarfile.data_filter)  # noqa: B010
        tar.extractall(target)  # noqa: S202 - what its digest says is ours


def unwheel(brought: Any, wheel: Any, part: str) -> None:
    """Unpack a wheel, likewise.

    Args:
        brought: of the configuration.
        wheel: of the answer.
        part: as for an archive.
    """
    content = pieces(brought["archives"], wheel)
    with checked(content, wheel, part, "the wheel of " + wheel["module"]) as file:
        zipfile.ZipFile(file).extractall(os.path.join(part, "tree"))  # noqa: S202 - likewise


@contextlib.contextmanager
def checked(content: Any, named: Any, folder: str, what: str) -> Any:
    """Open a copy of a content that has this digest, and nothing of any other.

    Args:
        content: pieces of it.
        named: the digest and the size that it must have.
        folder: for the copy.
        what: it is, for people.
    """
    got, size = hashlib.sha256(), 0
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            for data in content:
                size += len(data)
                if size > named["nbytes"]:
                    break
                got.update(data)
                file.write(data)
            if size != named["nbytes"] or got.hexdigest() != named["digest"]:
                raise Unfit(DAMAGED, f"{what} is damaged: its digest is another one")
            file.seek(0)
            yield file
        except FileNotFoundError as error:
            raise Unfit(MISSING, f"{what} is not here: {error.filename}") from error
        except (zlib.error, tarfile.TarError, zipfile.BadZipFile) as error:
            raise Unfit(DAMAGED, f"{what} cannot be unpacked: {error}") from error


def pieces(folder: str, archive: Any) -> Any:
    """Yield the content of an archive or a wheel: one file, or the parts of a compressed one."""
    if not archive.get("parts"):
        ending = ".whl" if "module" in archive else ".tar"
        yield from read(os.path.join(folder, archive["digest"] + ending))
        return
    inflating = zlib.decompressobj()
    for number in range(archive["parts"]):
        for data in read(os.path.join(folder, "{}.{}".format(archive["digest"], number))):
            yield inflating.decompress(data, archive["nbytes"] + 1)
    yield inflating.flush()


def read(path: str) -> Any:
    """Yield a file's content. One that is new may be seen late, on a file system that is shared."""
    until = time.monotonic() + LATE_S
    while True:
        try:
            file = open(path, "rb")  # noqa: SIM115 - closed below
            break
        except FileNotFoundError:
            if time.monotonic() >= until:
                raise
        time.sleep(0.2)
        os.listdir(os.path.dirname(path))
    with file:
        yield from iter(lambda: file.read(_CHUNK), b"")


def bring_modules(brought: Any, folder: str) -> Any:
    """See that all modules are there that we need; returns variables that name those brought."""
    looked = troubles, versions = look_at_modules()
    needed = [name for name in NEEDED if troubles[name]]
    if not needed and not is_too_old(versions):
        return {}
    if not (brought.get("wheels") or brought.get("asks")):
        if not needed:
            return {}
        packages = " ".join(NEEDED[name] for name in needed)
        text = f"{sys.executable} has no {', '.join(needed)} ({troubles[needed[0]]})"
        raise Unfit(UNFIT, f"{text}; install there, or in the image: {packages}")
    answer = brought if brought.get("wheels") else ask_for_wheels(brought["asks"], looked)
    if answer.get("problem"):
        raise Unfit(UNFIT, answer["problem"])
    folders = {"last": [], "first": []}  # type: Any
    for wheel in answer["wheels"]:
        tree = os.path.join(folder, wheel["digest"])
        place(tree, lambda part: unwheel(brought, wheel, part))  # noqa: B023
        folders["first" if wheel["first"] else "last"].append(tree)
    sys.path[:0] = folders["first"]
    sys.path += folders["last"]
    importlib.invalidate_caches()
    for name in OLDEST_MODULES:
        trouble = import_trouble(name)
        if trouble:
            text = f"{sys.executable} cannot import {name}, though it was brought: {trouble}"
            raise Unfit(UNFIT, text)
    named = {LAST: os.pathsep.join(folders["last"]), FIRST: os.pathsep.join(folders["first"])}
    return {name: text for name, text in named.items() if text}


def look_at_modules() -> Any:
    """Return why modules cannot be imported, empty where they can, and the versions of some."""
    troubles, versions = {}, {}
    for name in list(NEEDED) + list(USEFUL):
        if name in OLDEST_MODULES:
            troubles[name] = import_trouble(name)
            if not troubles[name]:
                versions[name] = str(getattr(sys.modules[name], "__version__", ""))
        else:  # torch and numpy take their time
            there = find_spec(name) is not None
            troubles[name] = "" if there else f"ModuleNotFoundError: No module named {name!r}"
    return troubles, versions


def import_trouble(name: str) -> str:
    """Why a module cannot be imported; empty if it can. One that is there may be broken."""
    try:
        importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - other people's code
        return f"{type(error).__name__}: {error}"
    return ""


def is_too_old(versions: Any) -> bool:
    """Whether a module is there that is older than ours may be."""
    for name, least in OLDEST_MODULES.items():
        parts = versions.get(name, "999").split(".")[:2]
        if tuple(int(part) for part in parts if part.isdigit()) < least:
            return True
    return False


def ask_for_wheels(folder: str, looked: Any) -> Any:
    """Ask the head for wheels that fit, in a file that it overwrites with its answer.

    The file is opened anew for each look: what has been there for some time, a file system that is
    shared shows late.
    """
    troubles, versions = looked
    question = {
        "python": python_facts(),
        "version": list(sys.version_info[:3]),
        "executable": sys.executable,
        "missing": troubles,
        "versions": versions,
    }
    file, path = tempfile.mkstemp(prefix=".wheels-", suffix=".json", dir=folder)
    asked = path.replace(".wheels-", "wheels-")
    with os.fdopen(file, "w") as out:
        json.dump({"question": question}, out)
    os.rename(path, asked)
    sys.stderr.write("waits for the head to bring {}\n".format(" ".join(filter(None, troubles))))
    sys.stderr.flush()
    try:
        until = time.monotonic() + WHEELS_S
        while time.monotonic() < until:
            with open(asked, "rb") as answered:
                content = answered.read()
            with contextlib.suppress(ValueError):  # half of it
                answer = json.loads(content.decode()).get("answer")
                if answer is not None:
                    return answer
            time.sleep(0.2)
    finally:
        os.unlink(asked)
    lacking = [name for name in NEEDED if troubles[name]]
    packages = " ".join(NEEDED[name] for name in lacking)
    text = f"the head has not brought {', '.join(lacking)} within {WHEELS_S:.0f} s"
    raise Unfit(UNFIT, f"{text}; is it running? or install there: {packages}")


def python_facts() -> Any:
    """Facts that decide which wheels fit: as those that machines are asked for by SSH."""
    cpu = os.uname().machine
    libc, libc_version = "", [0, 0]
    try:
        libc, _, number = str(os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        libc_version = [int(x) for x in number.split(".")[:2]]
    except (AttributeError, OSError, ValueError):
        libc = ""
    if not libc and os.path.exists(f"/lib/ld-musl-{cpu}.so.1"):
        libc, libc_version = "musl", [1, 2]
    threads = "t" if "t" in getattr(sys, "abiflags", "") else ""
    return {
        "implementation": sys.implementation.name + threads,
        "tag": _tag(),
        "cpu": cpu if sys.maxsize > 2**32 else "",
        "libc": libc,
        "libc_version": libc_version,
        "gpus": os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg"),
        "prolog": 0,
    }


def _tag() -> str:
    return sys.implementation.cache_tag or "none"


def folder_trouble(folder: str, alone: bool = False) -> str:
    """Why others could change what is in a folder, or put another one in its place, unless nobody
    else can come near it; empty if they cannot. Raises ``OSError``."""
    for way in (os.path.abspath(folder), os.path.realpath(folder)):
        last = True
        while way != "/":
            status = os.lstat(way)
            if status.st_uid != os.getuid() and (last or status.st_uid):
                return f"{way} belongs to another user (uid {status.st_uid})"
            mode = status.st_mode & 0o7777
            sticky = mode & 0o1000 and not last
            if mode & (0o022 if last else 0o002) and not sticky and not os.path.islink(way):
                return f"{way} can be changed by other users (mode {mode:o})"
            way, last = "/" if alone else os.path.dirname(way), False
    return ""


if __name__ == "__main__":
    ours = (HERE, os.path.realpath(HERE), os.path.dirname(os.path.realpath(__file__)))
    sys.path[:] = [each for each in sys.path if each and os.path.realpath(each) not in ours]
    sys.exit(main())
