"""The verb ``allocation``: what the place has in which an agent is to run. It reads the
configuration of that agent, and looks for what the agent would need.

Its answer goes into a file beside the agent's that the head has made, and overwrites it: whoever
shares the folder opens it again and again. Where there is no such file it is the last line of what
the program prints, short enough for the few bytes that a scheduler keeps of that.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import time
from typing import Any
from urllib.parse import urlsplit

from .gpus import answer as look_at_gpus
from .probe import facts_of_place, look_at_folder

#: Exit code of one whose answer is in what it printed.
PRINTED = 3

#: Bytes of an answer, and of a text in it: Kubernetes keeps 2,048 bytes of a container's output.
MOST_BYTES, MOST_TEXT = 1900, 200

#: So long the head is called (seconds): a network may need a moment, and so may a head that begins.
REACH_S, CALL_S = 15.0, 5.0

#: The ports of stores whose URLs name a host, and of addresses of other ones.
USUAL_PORTS = {"sftp": 22, "ssh": 22, "ftp": 21, "https": 443, "http": 80}

#: The beginnings of ids of GPUs, and of their MIG devices.
IDS = ("GPU-", "MIG-")

#: So long a node whose answer is printed waits for the others of its allocation (seconds): where it
#: ends as one that has failed, they are ended.
OTHERS_S = 300.0


def main() -> int:
    """Look, and answer."""
    with open(sys.argv[2], "rb") as file:
        config = json.loads(file.read().decode())
    line = short(look(config, config["probe"]))
    path = os.path.join(config["experiment_folder"], config["probe"]["answer"])
    own = os.path.isabs(config["probe"]["answer"])  # each node has such a file for itself
    rank = 0 if own else rank_of(config)
    try:
        path += f".{rank}" if rank else ""
        with open(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_TRUNC), "w") as out:
            out.write(line)
    except OSError:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
        wait_for_others(config)
        return PRINTED
    return 0


def rank_of(config: dict[str, Any]) -> int:
    """The rank of this node in its allocation."""
    name = config.get("rank_variable") or "BEQUEATH_RANK"
    if config.get("nodes", 1) == 1:
        return 0
    given = (os.environ.get(name, ""), os.environ.get("BEQUEATH_RANK_OFFSET", "0"))
    return sum(map(int, given)) if all(each.isdigit() for each in given) else 0


def wait_for_others(config: dict[str, Any]) -> None:
    """Wait until all nodes of the allocation have printed their answers, within a bound."""
    nodes = config.get("nodes", 1)
    if nodes == 1:
        return
    folder, name = config["experiment_folder"], config["probe"]["answer"] + ".printed-"
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        descriptor, own = tempfile.mkstemp(prefix=name, dir=folder)
        os.close(descriptor)
        until = time.monotonic() + OTHERS_S
        while time.monotonic() < until:
            if sum(each.startswith(name) for each in os.listdir(folder)) >= nodes:
                time.sleep(1.0)  # until the others have seen it
                break
            time.sleep(0.2)
        os.unlink(own)
    except OSError:
        return  # they share no folder


def look(config: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Look.

    Args:
        config: of the agent, as it is to be there.
        asked: names of ``modules`` and ``packages``, and of the file ``marker`` that the head has
            made in its weights root; empty for none.
    """
    brought, trial = config.get("brought"), config["trial"]
    folder = brought["work"] if brought else config["experiment_folder"]
    code = trial["code_directory"]
    return {
        **facts_of_place(folder, cannot_be_used(folder), asked),
        "code": [],
        "runtime": [],
        "folders": dict(folders_of(config, asked["marker"])),
        "lacks_code": code if asked.get("code", True) and not os.path.isdir(code) else "",
        **head_of(config),
        **store_of(config.get("remote")),
        "node": os.environ.get("SLURMD_NODENAME") or os.uname().nodename,
        "gpus": shown_gpus(os.environ.get("CUDA_VISIBLE_DEVICES")),
    }


def shown_gpus(visible: str | None) -> dict[str, Any]:
    """The GPUs of this place that an agent would see.

    Args:
        visible: the variable by which a scheduler hides those of others; those that it names by
            ids are not looked up.
    """
    found = look_at_gpus({})
    gpus: Any = found["gpus"]
    words = None if visible is None else [word.strip() for word in visible.split(",")]
    found = {**found, "trouble": str(found["trouble"])[:MOST_TEXT]}
    if words is None or any(word.startswith(IDS) for word in words):
        return found
    shown = numbers_in(words, len(gpus))
    return {**found, "gpus": [gpus[number] for number in shown], "shown": shown}


def numbers_in(parts: list[str], count: int) -> list[int]:
    """The numbers of GPUs that the parts of the variable name, as agents and CUDA read it: nothing
    counts after the first one that names none, such as ``-1``, or Slurm's ``NoDevFiles``."""
    numbers: list[int] = []
    for part in parts:
        if not (part.isascii() and part.isdigit() and int(part) < count):
            break
        if int(part) not in numbers:
            numbers.append(int(part))
    return numbers


def cannot_be_used(folder: str) -> str:
    """Why nothing can be put into a folder; empty if it can."""
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"bequeath")
    except OSError as error:
        return f"{error.filename or folder}: {error.strerror}"
    return ""


def folders_of(config: dict[str, Any], marker: str) -> Any:
    """Yield the folders of weights, by names that do not depend on where they are mounted."""
    seen = config.get("remote") is None and not config.get("no_weights")
    if seen and config.get("save_key", "save_path"):
        yield "weights", look_at_folder(config["weights_root"], marker)
    for number, path in enumerate(config.get("read_roots", ())):
        yield f"read {number}", look_at_folder(path, None)


def store_of(remote: dict[str, Any] | None) -> dict[str, str]:
    """The place of the store of weights, and why nobody answers there, as far as its address is
    known without its library: a host in the URL, or an ``endpoint_url`` among its options."""
    if remote is None:
        return {}
    options = remote.get("options", {})
    inner = options.get("client_kwargs")
    text = remote["url"]
    if urlsplit(text).scheme not in USUAL_PORTS:
        inner = inner if isinstance(inner, dict) else {}
        text = options.get("endpoint_url") or inner.get("endpoint_url")
    try:
        parts = urlsplit(str(text or ""))
        port = parts.port or options.get("port") or USUAL_PORTS.get(parts.scheme)
    except ValueError:
        return {}
    if not (parts.hostname and isinstance(port, int)):
        return {}  # only its library knows where it is, or it is named by a reference
    place = f"{parts.hostname}:{port}"
    try:
        socket.create_connection((parts.hostname, port), CALL_S).close()
    except OSError as error:
        return {"store": place, "store_trouble": (error.strerror or str(error))[:MOST_TEXT]}
    return {"store": place}


def head_of(config: dict[str, Any]) -> dict[str, str]:
    """By which of its ways an agent would reach the head, the first one that leads there; or why by
    none."""
    troubles = []
    for each in [config["head"], *config.get("ways", ())]:
        trouble, word = unreachable(each), each.get("way") or "directly"
        if not trouble:
            return {"head": "", "way": word}
        troubles.append(f"{word}: {trouble}")
    return {"head": "; ".join(troubles), "way": ""}


def unreachable(way: dict[str, Any]) -> str:
    """Why the head, or the machine from which it is dialed, does not answer; empty if it does, or
    none is called."""
    kind, _, place = way["address"].partition("://")
    jump = way.get("jump")
    if kind == "folder":
        there = os.path.isfile(os.path.join(place, "down.bell"))
        return "" if there else f"no head has begun its line in {place}"
    if kind != "tcp":
        return ""
    begins = (b"SSH-", "an SSH server") if jump else (b"\xff", "a head")
    place = f"{jump['host']}:{jump['port']}" if jump else place
    until = time.monotonic() + REACH_S
    while True:
        trouble = silent(place, *begins)
        if not trouble or time.monotonic() >= until:
            return trouble
        time.sleep(0.5)


def silent(place: str, begins: bytes = b"\xff", what: str = "a head") -> str:
    """Why nobody answers at HOST:PORT with words that begin so; empty if somebody does.

    Args:
        place: where.
        begins: the beginning; that of ZeroMQ's greeting, if not given.
        what: it is that answers so, for people.
    """
    host, _, port = place.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), CALL_S) as line:
            line.settimeout(CALL_S)
            greeting = line.recv(16)
    except OSError as error:  # names that nobody knows, and times that ran out, too
        return error.strerror or str(error)
    if not greeting.startswith(begins):
        return f"something else than {what} listens there"
    return ""


def short(answer: dict[str, Any]) -> str:
    """The answer in one line of few bytes."""
    for name, why in answer["missing"].items():
        answer["missing"][name] = why[:MOST_TEXT]
    answer["head"] = answer["head"][:MOST_TEXT]
    answer["folder_trouble"] = answer["folder_trouble"][:MOST_TEXT]
    line = json.dumps(answer, separators=(",", ":"))
    if len(line) > MOST_BYTES:
        answer["versions"] = {}
        answer["missing"] = {name: why[:40] for name, why in answer["missing"].items()}
        line = json.dumps(answer, separators=(",", ":"))
    if len(line) > MOST_BYTES:
        for gpu in answer["gpus"]["gpus"]:
            gpu["name"] = gpu["name"][:12]
            gpu.pop("trouble", None)
        line = json.dumps(answer, separators=(",", ":"))
    return line
