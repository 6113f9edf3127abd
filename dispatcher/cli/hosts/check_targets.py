"""The machines that ``hosts check`` is to check, and the needs of each."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dispatcher.errors import PermanentBackendError, UserError
from dispatcher.ssh import SshTarget
from dispatcher.ssh.inspecting import HostNeeds
from trial_runtime.torch_version import why_unsafe

_UNSAFE = {"torch": why_unsafe}

_HOST = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[^\]\s]+\]|[^\s:@]+)(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True)
class CheckTarget:
    """A machine, its name in the output, and what is needed there.

    ``weights_here`` is this machine's weights root, ``weights_there`` the folder there that must be
    the same; empty where that is unknown.
    """

    name: str
    target: SshTarget
    needs: HostNeeds
    weights_here: Path | None = None
    weights_there: str = ""

    @contextlib.contextmanager
    def weights_seen(self) -> Iterator[HostNeeds]:
        """Give the needs, with a marker file in the weights root until the end of the context."""
        if not self.weights_there:
            yield self.needs
            return
        token = f".bequeath-seen-{secrets.token_hex(8)}"
        path = self.weights_here / token if self.weights_here is not None else None
        try:
            if path is not None:
                path.touch()
        except OSError:
            path = None  # `doctor` says what is wrong with it here
        try:
            folders = {self.weights_there: token if path is not None else ""}
            yield replace(self.needs, folders=folders)
        finally:
            if path is not None:
                path.unlink(missing_ok=True)


def target_named(text: str, jump: str = "") -> SshTarget:
    """Read ``[user@]host[:port]``, an IPv6 address in brackets.

    Raises:
        UserError: the text names no machine.
    """
    need_paramiko()
    match = _HOST.fullmatch(text)
    if match is None or int(match["port"] or 0) > 65535:
        raise UserError(f"{text!r} names no machine", hint="write [USER@]HOST[:PORT]")
    return SshTarget(
        host=match["host"].strip("[]"),
        port=int(match["port"] or 0),
        user=match["user"] or "",
        jump=target_named(jump) if jump else None,
    )


def need_paramiko() -> None:
    """Check that paramiko is installed, rather than fail where it is imported.

    Raises:
        PermanentBackendError: paramiko is not installed.
    """
    if importlib.util.find_spec("paramiko") is None:
        raise PermanentBackendError(
            "machines are reached by SSH with paramiko, which is not installed",
            hint="pip install 'bequeath[ssh]'",
        )


def is_file(word: str) -> bool:
    """Whether a word of the command line names an experiment file rather than a machine."""
    return Path(word).is_file() or word.endswith((".yml", ".yaml")) or os.sep in word


def check_targets(word: str, python: str, weights: str, jump: str) -> list[CheckTarget]:
    """Return the machines for an argument of the command line. Reads experiment files.

    Args:
        word: an experiment file, or a machine.
        python: the Python there, for a machine.
        weights: the weights root there, for a machine; empty: not checked.
        jump: the machine by way of which it is reached; empty: none.

    Raises:
        UserError: the file is none, or names no machine.
        PermanentBackendError: a reference to a password leads nowhere.
    """
    if is_file(word):
        return _of_file(Path(word))
    from dispatcher.cli.hosts.supply import supply

    needs = HostNeeds(python=python, useful=_useful(), unsafe=_UNSAFE, supply=supply)
    return [CheckTarget(word, target_named(word, jump), needs, weights_there=weights)]


def _useful(*, cache: bool = True) -> dict[str, str]:
    """Return optional modules, without those that other checks report on, such as that of GPUs."""
    from dispatcher.wheelhouse import USEFUL

    passed_over = {"pynvml"} if cache else {"pynvml", "filelock"}
    return {name: missed for name, missed in USEFUL.items() if name not in passed_over}


def _of_file(path: Path) -> list[CheckTarget]:
    from dispatcher.backends.ssh.provisioning import OLDEST
    from dispatcher.cli.hosts.supply import supply
    from dispatcher.experiment import load_experiment
    from dispatcher.experiments.known_folders import with_default_folder
    from dispatcher.ssh.inspecting import NEEDED_MODULES
    from dispatcher.wiring.machines import machine_of, places, target_of
    from dispatcher.wiring.resources import agent_resources

    config = with_default_folder(load_experiment(path))
    root = config.weights_root
    targets = []
    for place in places(config):
        if place.machine is None:
            continue
        machine = machine_of(place.worker, place.machine)
        resources, taken = agent_resources(config, place), config.trial_needs
        needs = HostNeeds(
            python=machine.command(),
            oldest=OLDEST,
            unsafe=_UNSAFE,
            useful=_useful(cache=config.weights_cache.when != "off"),
            supply=supply,
            work_folder=machine.work_folder,
            read_folders=machine.read_roots or tuple(map(str, config.weights_read_roots)),
            modules=(*NEEDED_MODULES, "pynvml") if resources.must_have_gpus else NEEDED_MODULES,
            cpus=taken.trial_cpu_number or 0.0,
            gpus=taken.trial_gpu_number or 0.0,
            gpu_memory=config.min_gpu_memory or 0,
            gpu_indices=resources.gpu_indices or (),
        )
        here = root if isinstance(root, Path) and root.is_dir() else None
        there = machine.weights_root or (str(root) if isinstance(root, Path) else "")
        targets.append(CheckTarget(place.worker, target_of(place.machine), needs, here, there))
    if not targets:
        raise UserError(
            "names no machines", hint="see trainingService.machineList", where=str(path)
        )
    return targets
