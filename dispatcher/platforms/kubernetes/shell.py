"""A shell in the pod of a worker, by kubectl: it knows each way in that there is."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from dispatcher.errors import PermanentBackendError
from dispatcher.platforms.allocations.allocation import allocation_name, service_label
from dispatcher.platforms.allocations.incarnation import read_incarnation
from dispatcher.platforms.files import Whereabouts
from dispatcher.platforms.given import Given
from dispatcher.platforms.kubernetes.api.server import PODS, ApiServer
from dispatcher.platforms.kubernetes.bodies import allocation_in, selector_of
from dispatcher.platforms.kubernetes.section import K
from dispatcher.platforms.kubernetes.translation import config_there
from dispatcher.remote_python.bundle import module_alone
from dispatcher.remote_python.on_host import shell
from trial_runtime.agent.runners.environment import is_reference

KUBECTL = "kubectl"


@dataclass(frozen=True)
class ShellInPod(Generic[K]):
    """See :class:`dispatcher.platforms.worker_files.AttemptShell`.

    Args:
        given: that of the worker.
        order: the attempt there.
        server: the namespace.
        run: runs a program, with all of its variables, with our terminal; its exit code.
    """

    given: Given[K]
    order: Whereabouts
    server: ApiServer
    run: Callable[[Sequence[str], Mapping[str, str]], int]

    def open(self, command: Sequence[str], *, terminal: bool) -> int:
        """See :meth:`AttemptShell.open`."""
        section = self.given.section
        pod = self._pod()
        there = [KUBECTL, f"--namespace={self.server.namespace}"]
        there += [f"--kubeconfig={section.kubeconfig}"] if section.kubeconfig else []
        there += [f"--context={section.context}"] if section.context else []
        there += ["exec", "--stdin", *(["--tty"] if terminal else [])]
        there += [pod, f"--container={section.allocation_kind.container}", "--"]
        if shutil.which(KUBECTL) is None:
            raise PermanentBackendError(
                f"{KUBECTL} is not installed here, by which a shell in a pod is opened",
                hint=f"install it; or where it is: {shlex.join([*there, '/bin/sh'])}",
                where=self.given.worker,
            )
        # The command is in the address of a request, which servers log and proxies bound: there is
        # no secret in it, and little code.
        order = json.dumps({**self.order.for_shell(), "command": list(command)})
        program = module_alone(Path(shell.__file__), shell.VARIABLE, order)
        return self.run([*there, section.python, *program], os.environ)

    def _pod(self) -> str:
        """The name of the pod that the worker has now. Asks the server."""
        newest = read_incarnation(self.given.records)
        if newest is None:
            raise self._nothing("it never had one")
        experiment = self.given.config.experiment
        end = allocation_name("", self.given.worker, newest.number)
        beginning = service_label(experiment, "").rpartition("-")[0]
        wanted = re.compile(f"{re.escape(beginning)}-[0-9a-f]+{re.escape(end)}")
        kind = self.given.section.allocation_kind
        listed = self.server.list(PODS, selector_of(experiment)).objects
        # Not each id can be selected by: among the pods may be those of other people.
        mine = [x for x in listed if wanted.fullmatch(allocation_in(kind, x, of_pod=True))]
        mine.sort(key=kind.rank_of)
        phases = [str((pod.get("status") or {}).get("phase", "of no phase")) for pod in mine]
        for pod, phase in zip(mine, phases, strict=True):
            if phase == "Running":
                return str(pod["metadata"]["name"])
        raise self._nothing(f"it is {phases[-1]}" if phases else "it has gone, or was never there")

    def _nothing(self, why: str) -> PermanentBackendError:
        return PermanentBackendError(
            f"there is no pod to open a shell in: {why}",
            hint="what was fetched of its trials is in the experiment's folder",
            where=self.given.worker,
        )


def whereabouts_there(given: Given[K], trial: int, attempt: int, pid: int) -> Whereabouts:
    """An attempt as its pod has it. Values of variables that are secrets stay away: while the trial
    runs the shell takes them from its process.

    Args:
        given: that of its worker.
        trial: the number of its trial.
        attempt: its number within the trial.
        pid: of its process there; 0 for none.
    """
    config = config_there(given.config, given.section, token="")
    above = f"{config.experiment_folder}/trials/{trial}/{attempt}"
    plain: Mapping[str, str] = {
        name: value.removeprefix("literal:")
        for name, value in config.trial.environment.items()
        if not is_reference(value)
    }
    return Whereabouts(
        config.experiment,
        trial,
        attempt,
        above,
        pid,
        work=f"{above}/work",
        code=config.trial.code_directory,
        weights_root=config.weights_root,
        environment=lambda: plain,
    )
