"""A driver that is not there: a library under NVML's name, compiled here, and the file it reads
at each call, so that a test changes GPUs while the program under test looks at them.

Row by row the file says what :class:`Gpu` and :class:`Part` say. No CUDA comes with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

#: Names the file; without it no driver is loaded.
STATE_VARIABLE = "BEQUEATH_FAKE_NVML"

#: Errors of NVML.
LOST, NEEDS_RESET, NOT_LOADED, UNKNOWN = 15, 16, 9, 999

_SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS 64
#define PIDS 16
#define OK 0
#define BAD 2
#define UNSUPPORTED 3
#define ABSENT 6
#define SMALL 7
#define UNLOADED 9

typedef unsigned int u;
typedef unsigned long long ull;

/* A row is a GPU (over < 0) or a part of the GPU that is row `over`, at place `at`. */
struct row {
    int over, at, split, load, celsius, error, users, pid[PIDS];
    long total, used, milliwatts, taken[PIDS];
    char uuid[80], name[80];
};
struct row rows[ROWS];
static int known, gpus[ROWS], gpu_count, opened;

static int read_all(void)
{
    char line[1024], kind[16];
    const char *path = getenv("BEQUEATH_FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    int delay, fault = 0;

    if (!file)
        return UNLOADED;
    known = gpu_count = 0;
    while (fgets(line, sizeof line, file) && known < ROWS) {
        struct row *r = &rows[known];
        int took = 0, more, pid;
        long mib;
        if (sscanf(line, "delay %d", &delay) == 1) {
            usleep(delay * 1000);
            continue;
        }
        if (sscanf(line, "fault %d", &fault) == 1)
            continue;
        if (sscanf(line, "%15s %d %d %d %79s %79s %ld %ld %d %d %ld %d%n", kind, &r->over, &r->at,
                   &r->split, r->uuid, r->name, &r->total, &r->used, &r->load, &r->celsius,
                   &r->milliwatts, &r->error, &took) != 12)
            continue;
        for (r->users = 0; r->users < PIDS; r->users++, took += more) {
            if (sscanf(line + took, " %d:%ld%n", &pid, &mib, &more) != 2)
                break;
            r->pid[r->users] = pid;
            r->taken[r->users] = mib;
        }
        if (r->over < 0)
            gpus[gpu_count++] = known;
        known++;
    }
    fclose(file);
    return fault;
}

static int find(struct row *handle, struct row **out)
{
    int fault = opened ? read_all() : 1;
    long number = handle - rows;

    if (fault)
        return fault;
    if (number < 0 || number >= known)
        return 15;
    *out = &rows[number];
    return rows[number].error;
}

static int say(const char *text, char *out, u size)
{
    if (strlen(text) + 1 > size)
        return SMALL;
    strcpy(out, text);
    return OK;
}

int nvmlInitWithFlags(u flags)
{
    int fault = read_all();
    (void)flags;
    opened += !fault;
    return fault;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { opened -= opened > 0; return OK; }

const char *nvmlErrorString(int code)
{
    static char other[32];
    if (code == 15) return "GPU is lost";
    if (code == 16) return "GPU requires reset";
    if (code == UNLOADED) return "Driver Not Loaded";
    snprintf(other, sizeof other, "error %d", code);
    return other;
}

int nvmlDeviceGetCount_v2(u *count)
{
    int fault = opened ? read_all() : 1;
    *count = gpu_count;
    return fault;
}

int nvmlDeviceGetHandleByIndex_v2(u index, void **handle)
{
    int fault = opened ? read_all() : 1;
    if (fault)
        return fault;
    if (index >= (u)gpu_count)
        return BAD;
    *handle = &rows[gpus[index]];
    return rows[gpus[index]].error;
}

#define ASK(handle) struct row *r; int fault = find(handle, &r); if (fault) return fault

int nvmlDeviceGetUUID(void *h, char *out, u size) { ASK(h); return say(r->uuid, out, size); }
int nvmlDeviceGetName(void *h, char *out, u size) { ASK(h); return say(r->name, out, size); }

int nvmlDeviceGetMemoryInfo(void *h, ull *out)
{
    ASK(h);
    out[0] = (ull)r->total << 20;
    out[1] = (ull)(r->total - r->used) << 20;
    out[2] = (ull)r->used << 20;
    return OK;
}

int nvmlDeviceGetUtilizationRates(void *h, u *out)
{
    ASK(h);
    if (r->over >= 0)
        return UNSUPPORTED;
    out[0] = r->load;
    out[1] = 0;
    return OK;
}

int nvmlDeviceGetPowerUsage(void *h, u *out) { ASK(h); *out = r->milliwatts; return OK; }
int nvmlDeviceGetTemperature(void *h, int what, u *out)
{
    ASK(h);
    (void)what;
    *out = r->celsius;
    return OK;
}

int nvmlDeviceGetMigMode(void *h, u *now, u *then)
{
    ASK(h);
    *now = *then = r->split;
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(void *h, u *count) { ASK(h); *count = 7; return OK; }

int nvmlDeviceGetMigDeviceHandleByIndex(void *h, u place, void **out)
{
    ASK(h);
    for (int i = 0; i < known; i++)
        if (rows[i].over == r - rows && rows[i].at == (int)place) {
            *out = &rows[i];
            return OK;
        }
    return ABSENT;
}

struct use { u pid; ull bytes; u instance, compute; };

int nvmlDeviceGetComputeRunningProcesses_v3(void *h, u *count, struct use *out)
{
    u room = *count;
    ASK(h);
    *count = r->users;
    if (room < (u)r->users)
        return SMALL;
    for (int i = 0; i < r->users; i++) {
        out[i].pid = r->pid[i];
        out[i].bytes = r->taken[i] < 0 ? ~0ULL : (ull)r->taken[i] << 20;
        out[i].instance = out[i].compute = ~0u;
    }
    return OK;
}
"""


@dataclass
class Part:
    """A MIG device, at one of the seven places of its GPU. Sizes in MiB."""

    uuid: str
    place: int = 0
    total: int = 10_000
    used: int = 0
    processes: Mapping[int, int] = field(default_factory=dict)


@dataclass
class Gpu:
    """One GPU. ``processes``: MiB by number, -1 where the driver does not tell."""

    uuid: str
    name: str = "Fake-GPU"
    total: int = 40_000
    used: int = 0
    load: int = 0
    celsius: int = 35
    watts: float = 60.0
    error: int = 0
    processes: Mapping[int, int] = field(default_factory=dict)
    parts: Sequence[Part] = ()


class FakeDriver:
    """The library and its file, in a folder. Skips the test where no compiler is."""

    def __init__(self, folder: Path) -> None:
        self._state = folder / "gpus"
        self._library = folder / "libnvidia-ml.so.1"
        if shutil.which("gcc") is None:
            pytest.skip("needs gcc, to make a library under NVML's name")
        pytest.importorskip("pynvml", reason="needs nvidia-ml-py: pip install 'bequeath[gpu]'")
        options = ["-shared", "-fPIC", "-O1", "-Wl,-soname,libnvidia-ml.so.1"]
        subprocess.run(
            ["gcc", *options, "-x", "c", "-", "-o", str(self._library)],
            input=_SOURCE,
            text=True,
            check=True,
        )

    @property
    def environment(self) -> dict[str, str]:
        """For processes that are to find it."""
        before = os.environ.get("LD_LIBRARY_PATH", "")
        paths = os.pathsep.join(part for part in (str(self._library.parent), before) if part)
        return {STATE_VARIABLE: str(self._state), "LD_LIBRARY_PATH": paths}

    def show(self, *gpus: Gpu, fault: int = 0, delay_ms: int = 0) -> None:
        """From now on these are there, in this order, all at once.

        Args:
            gpus: the GPUs.
            fault: what every call says instead.
            delay_ms: what every call takes.
        """
        rows = [f"fault {fault}", f"delay {delay_ms}"]
        number = 0
        for gpu in gpus:
            over = number
            rows.append(
                f"gpu -1 0 {int(bool(gpu.parts))} {gpu.uuid} {gpu.name} {gpu.total} {gpu.used} "
                f"{gpu.load} {gpu.celsius} {int(gpu.watts * 1000)} {gpu.error}{_uses(gpu)}"
            )
            number += 1
            for part in gpu.parts:
                rows.append(
                    f"part {over} {part.place} 0 {part.uuid} {gpu.name} {part.total} {part.used} "
                    f"0 0 0 {gpu.error}{_uses(part)}"
                )
                number += 1
        partial = self._state.with_suffix(f".{os.getpid()}")
        partial.write_text("\n".join(rows) + "\n")
        partial.replace(self._state)

    def unload(self) -> None:
        """From now on no driver is loaded."""
        self._state.unlink(missing_ok=True)


def _uses(device: Gpu | Part) -> str:
    return "".join(f" {pid}:{mib}" for pid, mib in device.processes.items())
