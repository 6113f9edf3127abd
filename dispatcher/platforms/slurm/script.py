"""The job of an order: how it is submitted, and what it runs. Pure.

Nothing secret is in either: Slurm shows both to others. The agent's configuration and its variables
lie in files that only their owner can read.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence

from dispatcher.platforms.slurm.options import arguments_of
from dispatcher.platforms.slurm.section import SlurmServiceConfig, wall_minutes

#: A failure of the prolog's last command may be meant (``[ -f x ] && . x``): reported, no reason to
#: stop. It may not read the script, which comes from stdin's place.
_BEHIND_PROLOG = "eval {} >&2 </dev/null; export BEQUEATH_PROLOG_ENDED=$?"

#: A variable of the script that no prolog has.
_STEM = "bequeath_stem"

#: Gives each task of a step its rank.
RANK_VARIABLE = "SLURM_PROCID"

#: Where a job writes what it says, below its worker's folder.
AGENT_LOG = "logs/agent.log"


def submit_command(
    section: SlurmServiceConfig,
    name: str,
    *,
    folder: str,
    log: str,
    nodes: int = 1,
    tasks: int = 0,
) -> list[str]:
    """The command that submits a job, whose script comes by stdin.

    Slurm's own restarts are off. Variables of this process stay here: a job begins with those of a
    login.

    Args:
        section: the service's part of the experiment file.
        name: of the job.
        folder: where it begins.
        log: the file for its output.
        nodes: how many of them.
        tasks: of an array; 0 for a job of its own.
    """
    wanted = {
        "partition": ",".join(section.partition),
        "account": section.account,
        "qos": section.qos,
        "constraint": section.constraint,
        "reservation": section.reservation,
        "gres": ",".join(section.gres),
        "cpus-per-task": section.cpus and str(section.cpus),
        "mem": section.memory and f"{math.ceil(section.memory / 2**20)}M",
        "time": section.wall_time and str(wall_minutes(section.wall_time)),
        "nodes": str(nodes) if nodes > 1 else "",
        "ntasks-per-node": "1" if nodes > 1 else "",
        "array": f"0-{tasks - 1}" if tasks else "",
    }
    return [
        "sbatch",
        "--parsable",
        "--no-requeue",
        "--export=NONE",
        f"--job-name={name}",
        f"--chdir={folder}",
        f"--output={log.replace('%', '%%')}",
        "--open-mode=append",
        *(f"--{key}={value}" for key, value in wanted.items() if value),
        *arguments_of(section.options),
    ]


def on_all_nodes(command: Sequence[str], nodes: int, cpus: int | None = None) -> list[str]:
    """The command that runs another one once on each node of a job.

    One task that ends does not end the others: rank 0 sees to that, and has to report it.

    Args:
        command: what is run; what is appended to the result, is appended to it.
        nodes: of the job.
        cpus: of each task; steps do not have those of their job by themselves.
    """
    if nodes == 1:
        return list(command)
    return [
        "srun",
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--ntasks-per-node=1",
        *([f"--cpus-per-task={cpus}"] if cpus else []),
        "--mpi=none",
        "--kill-on-bad-exit=0",
        "--wait=0",
        *command,
    ]


def batch_script(command: Sequence[str], *, stem: str, prolog: str = "", title: str = "") -> bytes:
    """The script of a job. It becomes the agent, which so gets the signals that Slurm sends.

    Steps of the job would get no variables at all, as the job has got none: that is put right.

    Args:
        command: the agent's; the path of its configuration follows.
        stem: the path of its files without their endings. ``.variables`` is removed when it was
            read, so that a job that somebody starts again has none and ends.
        prolog: commands of the user's.
        title: what people are told of it.
    """
    return _script(command, [f"{_STEM}={shlex.quote(stem)}"], prolog, title)


def array_script(command: Sequence[str], *, stems: str, prolog: str = "", title: str = "") -> bytes:
    """The script of all tasks of an array; see :func:`batch_script`.

    Args:
        command: the agent's; the path of its configuration follows.
        stems: a file with the path of each task's files, a line each. Each task begins in their
            folder, where its log is.
        prolog: commands of the user's.
        title: what people are told of it.
    """
    own = f'sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" {shlex.quote(stems)}'
    first = [f'{_STEM}="$({own})"', f'cd "${{{_STEM}%/*}}" || exit 1']
    return _script(command, [*first, f"exec >>{AGENT_LOG} 2>&1"], prolog, title)


def _script(command: Sequence[str], first: Sequence[str], prolog: str, title: str) -> bytes:
    file = f'"${_STEM}.variables"'
    lines = ["#!/bin/bash -l" if prolog else "#!/bin/sh"]
    lines += [f"# {title}"] if title else []
    lines += [*first, "export SLURM_EXPORT_ENV=ALL", f". {file} || exit 1", f"rm -f {file}"]
    lines += [_BEHIND_PROLOG.format(shlex.quote(prolog))] if prolog else []
    lines.append(f'exec {shlex.join(command)} "${_STEM}.config"')
    return "\n".join([*lines, ""]).encode(errors="surrogateescape")


def variables_script(variables: Mapping[str, str]) -> bytes:
    """A script that sets variables, whatever their values hold."""
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
    return "".join(lines).encode(errors="surrogateescape")
