"""One way to replace a file, one rule of pauses, one base of errors, one kind of finding.

What is made in another way is named here, with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.arch.trees import nodes_of

ROOT = Path(__file__).parents[2]
PRODUCT = ("bequeath", "dispatcher", "nfs_setup", "trial_runtime", "tuners")

#: Modules that rename what they wrote, beside ``trial_runtime/durable_file.py``.
RENAME = {
    # Of folders that the code of trials can change: by descriptors, so that no link is followed.
    "dispatcher/attempt_files/fetching.py",
    # The older part of a log, which is there already.
    "dispatcher/attempt_files/kept_logs.py",
    "trial_runtime/agent/attempts/preparing.py",
    "trial_runtime/artefacts.py",
    "trial_runtime/checkpoints.py",
    "trial_runtime/weights/cache/cache.py",
    "trial_runtime/weights/storage/publishing.py",
    # Whole folders, archives, links and stores, which no text in memory is the content of.
    "dispatcher/code_archive/packing.py",
    "dispatcher/maintenance/backup.py",
    "dispatcher/platforms/bringing.py",
    "dispatcher/store/migrate.py",
    "trial_runtime/agent/runners/environment.py",
    # Written piece by piece while the head works.
    "dispatcher/store/replay/background_write.py",
    "dispatcher/store/replay/restoring.py",
    # The inode is what is locked.
    "dispatcher/store/lock_file.py",
    # It looks whether a rename there is a single step, on machines that have nothing of ours.
    "dispatcher/remote_python/on_host/probe.py",
    # Logs that grow.
    "dispatcher/sinks/callbacks/calls.py",
    "trial_runtime/agent/base/logs.py",
    "trial_runtime/agent/link/outbox.py",
    # On other machines, where nothing of the rest is.
    "dispatcher/remote_python/on_host/placing.py",
    "dispatcher/remote_python/on_host/tidy.py",
    "dispatcher/platforms/ray/holder.py",
    "dispatcher/platforms/ray/cluster.py",
    "nfs_setup/local_host.py",
    "trial_runtime/begin.py",
    # What a share does when a file is renamed is what they measure.
    "nfs_setup/verify/files.py",
    "nfs_setup/verify/habits.py",
}

#: Modules that double a number again and again, beside ``trial_runtime/retry.py``: the core's
#: pauses are arithmetic of its own state, in which replays must agree for ever; the others look
#: again or gather longer, without that anything has failed.
DOUBLE = {
    "dispatcher/core/endings.py",
    "dispatcher/core/quarantine.py",
    "dispatcher/tuner_host/foreign_waits.py",
    "dispatcher/tuner_host/io_loop.py",
}

#: Exceptions with a base of their own, by why it is not that of ``BequeathError``.
OWN_BASES = {
    "the base itself": {"BequeathError"},
    "runs under Python 3.9 without the rest": {
        *("SetupError", "FolderGone", "NoAnswer", "NoCluster", "Unfit"),
    },
    "a wait that an author's except Exception must not swallow": {"WaitCancelled"},
    "a wrong value, which whoever asked for it turns into a finding with a place": {
        "BadNeeds", "BadPins", "CannotHonour", "InvalidMetric", "Misfit", "Misfits", "NotJson",
        "RolesDoNotFit", "SpaceError", "TunerArgumentError", "UnfitSpace", "WireError",
    },
    "a signal between two functions, which nobody reads": {
        "AgentEnded", "ChangesMeanwhile", "FilterTooSlow", "FrameTooLong", "HeadGone",
        "NoDevices", "NoMoreSessions", "NoSuchParameter", "Nonsense", "OutOfTime", "Refused",
        "Unreadable",
        "_Mine", "_TurnOver", "_Unacceptable",
    },
    "an error of the system, for whoever catches those": {"SilentPeer"},
    "an error of ours, too, which code of others catches by Python's class": {"WaitNotAllowed"},
    "NNI's own": {"NoMoreTrialError"},
}  # fmt: skip

_OF_PYTHON = {
    name
    for name, value in vars(__import__("builtins")).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}


def trees() -> Iterator[tuple[str, tuple[ast.AST, ...]]]:
    for package in PRODUCT:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), nodes_of(path.read_text())


def test_files_are_replaced_in_one_way() -> None:
    """Mutation: a draft and a rename by hand, which a power cut leaves half written."""
    found = {path for path, tree in trees() if any(map(_renames, tree))}
    assert found - {"trial_runtime/durable_file.py"} <= RENAME, "trial_runtime.durable_file does it"
    assert not RENAME - found, "take it out of the list"


def _renames(node: ast.AST) -> bool:
    """Whether this is ``os.replace(…)``, ``path.rename(to)`` or ``path.replace(to)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = getattr(node.func.value, "id", "")
    of_a_path = len(node.args) == 1 and not node.keywords and owner != "LockFile"
    return node.func.attr in ("rename", "replace") and (owner == "os" or of_a_path)


def test_pauses_grow_by_one_rule() -> None:
    """Mutation: one more loop that doubles its pause by itself."""
    found = {path for path, tree in trees() if any(map(_doubles, tree))}
    assert {path for path in found if not path.startswith("tuners/")} == {
        *DOUBLE,
        "trial_runtime/retry.py",
    }


def _doubles(node: ast.AST) -> bool:
    """Whether this is ``x *= 2``, ``pause = pause * 2`` or ``2 ** min(…)``."""
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Mult) and _is_two(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return _is_two(node.left) and not isinstance(node.right, ast.Constant)
    if isinstance(node, ast.Assign):
        names = {ast.unparse(target) for target in node.targets}
        return any(_is_twice(part, names) for part in ast.walk(node.value))
    return False


def _is_twice(node: ast.AST, names: set[str]) -> bool:
    """Whether this is ``2 * name``, or the other way round."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    sides = (node.left, node.right)
    return any(map(_is_two, sides)) and any(ast.unparse(side) in names for side in sides)


def _is_two(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 2


def test_errors_have_one_base() -> None:
    """Mutation: an error for people with a message and a hint of its own make."""
    own = {
        node.name
        for _, tree in trees()
        for node in tree
        if isinstance(node, ast.ClassDef)
        if {ast.unparse(base) for base in node.bases} & _OF_PYTHON
    }
    assert own == set().union(*OWN_BASES.values()), "derive it from trial_runtime.errors"


def test_findings_are_of_one_class() -> None:
    """But in the package that knows nobody. Mutation: a check with a kind of result of its own."""
    found = {
        path
        for path, tree in trees()
        for node in tree
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Finding", "Severity"))
    }
    assert found == {"dispatcher/findings.py", "nfs_setup/verify/findings.py"}


def test_search_spaces_are_read_in_one_way() -> None:
    """Mutation: a second set of the ten types, beside the one that tuners sample from."""
    found = {
        path.rpartition("/")[0]
        for path, tree in trees()
        for node in tree
        if isinstance(node, ast.ClassDef) and node.name in ("Choice", "RandInt")
    }
    assert found == {"tuners/space"}


def test_each_rule_bites() -> None:
    for text in ("os.replace(a, b)", "os.rename(a, b, src_dir_fd=c)", "draft.replace(path)"):
        assert any(map(_renames, ast.walk(ast.parse(text)))), text
    for text in ("text.replace('a', 'b')", "replace(row, x=1)", "moment.replace(microsecond=0)"):
        assert not any(map(_renames, ast.walk(ast.parse(text)))), text
    for text in ("pause *= 2", "self.p = min(self.p * 2.0, 9)", "2.0 ** min(failures, 30)"):
        assert any(map(_doubles, ast.walk(ast.parse(text)))), text
    for text in ("x = y * 2", "size = 2**53", "x *= 3"):
        assert not any(map(_doubles, ast.walk(ast.parse(text)))), text
