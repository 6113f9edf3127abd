"""Complaints of Slurm's commands, as errors that say whether they pass. Pure."""

from __future__ import annotations

import re

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError

#: Texts of a controller, or its authentication, that is away or busy, and of limits on how much may
#: be there at once. Nothing has to be changed in the request.
_PASSING = re.compile(
    "unable to contact slurm|connection (failure|refused|timed out|reset)|communication|timed out"
    "|message (send|receive) failure|zero bytes|resource temporarily|temporarily unable|standby"
    "|rate limit exceeded|authentication|munge|credential|shutting down|socket error|is busy"
    "|MaxJobCount|submissions disabled|job submit limit|SubmitJob|try again|broken pipe"
    "|required \\w+ not available|unexpected message|transport endpoint|internal error"
    "|address, check slurm.conf",
    re.IGNORECASE,
)

_HINTS = (
    ("partition", "`sinfo -s` lists partitions"),
    ("account", "`sacctmgr show associations user=$USER` lists your accounts"),
    ("qos", "`sacctmgr show qos` lists what there is"),
    ("feature", "`sinfo -o '%P %f'` lists features"),
    ("gres", "`sinfo -o '%P %G'` lists generic resources"),
    ("node configuration", "`sinfo -o '%P %c %m %G'` lists CPUs, memory and generic resources"),
    ("time limit", "`sinfo -o '%P %l'` lists time limits"),
    ("time specification", "write 'wallTime', such as 4h"),
    ("configuration source", "run it where `sinfo` works, such as on a login node"),
)

_BEGINNING = re.compile(r"^(?:(?:sbatch|squeue|scancel|sacct|scontrol|sinfo):\s*)?(?:error:\s*)?")
_USUAL = re.compile(r"^(Batch job submission failed|allocation failure|slurm_load_\w+ error):\s*")

_ENDED = re.compile("Invalid job id|already completing or completed|has already finished")

#: Longest complaint that is passed on (characters).
_LONGEST = 500


def complaint(command: str, code: int, err: bytes, *, where: str) -> BackendError:
    """The error of a command that has failed.

    Args:
        command: its name.
        code: its exit status.
        err: its stderr.
        where: the machine it ran on, or the service.
    """
    lines = [_plain(line) for line in err.decode(errors="replace").splitlines()]
    sentences = [line for line in dict.fromkeys(lines) if line and not line.startswith("Try ")]
    text = "; ".join(sentences)[-_LONGEST:] or f"ended with status {code} and said nothing"
    if any(_PASSING.search(line) for line in sentences):
        return PassingBackendError(f"{command}: {text}", where=where)
    lower = text.lower()
    hint = next((hint for word, hint in _HINTS if word in lower), "")
    return PermanentBackendError(f"{command}: {text}", hint=hint, where=where)


def is_about_arrays(error: BackendError) -> bool:
    """Whether a job was refused because it is an array."""
    return "job array" in error.message.lower()


def is_about_ended(err: bytes) -> bool:
    """Whether ``scancel`` complains of nothing but jobs that have ended, or are not there."""
    lines = [_plain(line) for line in err.decode(errors="replace").splitlines()]
    return all(_ENDED.search(line) for line in lines if line)


def _plain(line: str) -> str:
    return _USUAL.sub("", _BEGINNING.sub("", line.strip())).strip()
