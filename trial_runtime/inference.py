"""A process that asks a trained model: the trial's module is imported, its model is loaded, and
requests are answered one by one, until whoever asks is gone.

The module has ``infer(model, request)`` and, unless the model is what ``load_weights`` returns,
``load_model(parameters)``. The user's code has stdin, stdout and stderr as any program; answers go
another way, so that nothing it prints can be taken for one. It is not walled off: it may do what
its user may.
"""

from __future__ import annotations

import base64
import math
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from typing import Any, Optional

import msgspec

from trial_runtime import session as sessions
from trial_runtime.agent.processes.sweep import become_subreaper
from trial_runtime.agent.runners import calling
from trial_runtime.by_hand import ByHandSession
from trial_runtime.nesting import importing
from trial_runtime.session_file import SessionFile

#: Names of the functions in a trial's module.
INFER, LOAD_MODEL = "infer", "load_model"

#: The only key of an object that stands for bytes, such as those of an image file.
BYTES_KEY = "base64"

_LENGTH = struct.Struct(">I")

_DEEPEST = 32
_MOST_VALUES = 200_000

#: Integers that JSON readers take.
_MOST_INTEGER = (1 << 63) - 1

#: Letters of a traceback.
_MOST_TEXT = 8_000


class ModelOrder(msgspec.Struct, frozen=True):
    """The first message: what is asked for, and within which bounds.

    ``folder``: of the modules, first on the path. ``script``: a file in place of a module's name.
    ``drawings``: width and height of the fields that get rows of numbers, also from an image file.
    ``memory_bytes``: what the process may have for data. ``answer_bytes``: the size of an answer.
    """

    session: SessionFile
    folder: str
    module: str
    memory_bytes: int
    answer_bytes: int
    script: str = ""
    drawings: dict[str, tuple[int, int]] = {}


class ModelReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer, or why there is none. ``stage``: ``import``, ``load``, ``request``, ``infer`` or
    ``answer``."""

    value: Any = None
    took_s: float = 0.0
    failed: str = ""
    stage: str = ""


class NoAnswer(ValueError):
    """Raised for a value that is no answer."""


class ModelSession(ByHandSession):
    """The session of a model that is asked: its weights are the trial's own, and nothing is
    reported."""

    def __init__(self, file: SessionFile) -> None:
        self.file = file

    def report_intermediate(self, value: Any) -> None:
        """Do nothing: the trial is over."""

    def report_final(self, value: Any) -> None:
        """Do nothing: the trial is over."""


def send(line: socket.socket, message: Any) -> None:
    """Send one message. Raises ``OSError``."""
    content = msgspec.json.encode(message)
    line.sendall(_LENGTH.pack(len(content)) + content)


def receive(line: socket.socket) -> Optional[bytes]:
    """Receive one message; None if the other side is gone."""
    head = _exactly(line, _LENGTH.size)
    return None if head is None else _exactly(line, _LENGTH.unpack(head)[0])


def _exactly(line: socket.socket, many: int) -> Optional[bytes]:
    content = bytearray()
    while len(content) < many:
        piece = line.recv(min(many - len(content), 1 << 20))
        if not piece:
            return None
        content += piece
    return bytes(content)


class _Asked:
    """The one who asks, as this process speaks with it."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self._pid = os.getpid()

    def answer(self, reply: ModelReply) -> None:
        """Send an answer. A process that the user's code has forked, and that comes here as well,
        ends: the answer is its parent's."""
        calling.flush_streams()
        if os.getpid() != self._pid:
            os._exit(0)
        send(self.line, reply)


def main() -> None:
    """Answer at the socket whose descriptor is the first argument; ends the process."""
    line = socket.socket(fileno=int(sys.argv.pop(1)))
    line.set_inheritable(False)
    become_subreaper()  # what leaves its parents stays below us, where it is counted
    asked = _Asked(line)
    threading.Thread(target=_end_with, args=(line,), daemon=True).start()
    content = receive(line)
    if content is None:
        os._exit(1)
    order = msgspec.json.decode(content, type=ModelOrder)
    _bound(order.memory_bytes)
    sessions.adopt(ModelSession(order.session))
    started = time.monotonic()
    stage = ["import"]
    loaded = calling.attempt_call(lambda: _loaded(order, stage))
    if loaded.code or loaded.value is None:  # without a value: sys.exit(0)
        asked.answer(_failed(loaded, stage[0]))
        os._exit(1)
    infer, model = loaded.value
    asked.answer(ModelReply(took_s=time.monotonic() - started))
    while (content := receive(line)) is not None:
        asked.answer(_inferred(infer, model, msgspec.json.decode(content), order))
    os._exit(0)


def _end_with(line: socket.socket) -> None:
    """End this process, and all of its group, when the one who asks has ended."""
    poller = select.poll()
    poller.register(line, 0)
    while not poller.poll():
        pass
    os.killpg(0, signal.SIGKILL)


def _bound(memory_bytes: int) -> None:
    """Bound what this process, and each that it starts, may have."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    except (OSError, ValueError):
        pass  # this system has no such bound; whoever asks watches, too


def _loaded(order: ModelOrder, stage: list[str]) -> Any:
    """The function and the model. Raises whatever the user's code does."""
    calling.put_code_first(order.folder)
    module = _module(order)
    infer = getattr(module, INFER, None)
    if not callable(infer):
        raise NoAnswer(f"{order.script or order.module} has no function {INFER}(model, request)")
    build = getattr(module, LOAD_MODEL, None)
    stage[0] = "load"
    if build is None:
        import trial_runtime

        return infer, trial_runtime.load_weights()
    return infer, calling.invoke(build, msgspec.json.decode(order.session.parameters))


def _module(order: ModelOrder) -> Any:
    import importlib
    import importlib.util

    with importing(order.module):
        if not order.script:
            return importlib.import_module(order.module)
        spec = importlib.util.spec_from_file_location(order.module, order.script)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[order.module] = module  # as types of its own are looked up there
        spec.loader.exec_module(module)
        return module


def _inferred(infer: Any, model: Any, wanted: Any, order: ModelOrder) -> ModelReply:
    given = calling.attempt_call(lambda: requested(wanted, order.drawings))
    if given.code or given.text:
        return _failed(given, "request")
    started = time.monotonic()
    # In a list: one that ends by itself, with exit code 0, has returned nothing, not even None.
    result = calling.attempt_call(lambda: [infer(model, given.value)])
    took_s = time.monotonic() - started
    if result.code or result.value is None:
        return _failed(result, "infer")
    answer = calling.attempt_call(lambda: [plain(result.value[0])])
    if answer.code or answer.value is None:
        return _failed(answer, "answer")
    size = len(msgspec.json.encode(answer.value[0]))
    if size > order.answer_bytes:
        text = f"the answer has {size:,} bytes, and {order.answer_bytes:,} are allowed"
        return ModelReply(failed=text, stage="answer")
    return ModelReply(answer.value[0], took_s)


def _failed(result: calling.Result, stage: str) -> ModelReply:
    text = result.text or f"it ended by itself, with exit code {result.code}"
    text = text.removeprefix(f"{__name__}.{NoAnswer.__name__}: ")  # ours: the sentence is enough
    if result.out_of_memory:
        text = f"memory ran out\n{text}"
    safe = text[-_MOST_TEXT:].encode(errors="replace").decode()
    return ModelReply(failed=safe, stage=stage)


def with_bytes(value: Any) -> Any:
    """A request with bytes in place of objects that stand for them.

    >>> with_bytes({"picture": {"base64": "AAE="}, "many": 3})
    {'picture': b'\\x00\\x01', 'many': 3}
    """
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get(BYTES_KEY), str):
            return base64.b64decode(value[BYTES_KEY])
        return {name: with_bytes(each) for name, each in value.items()}
    if isinstance(value, list):
        return [with_bytes(each) for each in value]
    return value


def requested(value: Any, drawings: dict[str, tuple[int, int]]) -> Any:
    """A request as ``infer`` gets it: with bytes, and with rows in place of pictures of drawings.

    Raises:
        NoAnswer: an image file cannot be read as a drawing.
    """
    value = with_bytes(value)
    for name, (width, height) in drawings.items():
        if isinstance(value.get(name), bytes):
            value[name] = _drawn(name, value[name], width, height)
    return value


def _drawn(name: str, content: bytes, width: int, height: int) -> list[list[float]]:
    """The rows of a picture: 0 is paper, which is what most of its edge is, and 1 is ink."""
    try:
        from PIL import Image
    except ImportError:
        raise NoAnswer(
            f"{name!r}: reading an image file as a drawing needs Pillow in the trials' Python"
        ) from None
    import io

    try:
        picture = Image.open(io.BytesIO(content)).convert("L")
        if max(picture.size) > 4096:
            raise NoAnswer(f"{name!r}: the picture has more than 4096 pixels on a side")
        picture = picture.resize((width, height), Image.Resampling.BOX)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        if isinstance(error, NoAnswer):
            raise
        raise NoAnswer(f"{name!r}: the image file cannot be read: {error}") from None
    flat = list(picture.tobytes())
    rows = [flat[at : at + width] for at in range(0, len(flat), width)]
    edge = [*rows[0], *rows[-1], *(row[0] for row in rows), *(row[-1] for row in rows)]
    light = sum(edge) / len(edge) > 127
    return [[(255 - dot if light else dot) / 255 for dot in row] for row in rows]


def plain(value: Any) -> Any:
    """An answer as values that JSON has: arrays and tensors become lists, NaN becomes a text.

    >>> plain({1: (0.5, float("nan"))})
    {'1': [0.5, 'NaN']}

    Raises:
        NoAnswer: it holds something else, or too many values, or nests too deeply.
    """
    return _plain(value, 0, [_MOST_VALUES])


def _plain(value: Any, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if left[0] < 0:
        raise NoAnswer(f"the answer has more than {_MOST_VALUES:,} values")
    if depth > _DEEPEST:
        raise NoAnswer(f"the answer nests more than {_DEEPEST} levels deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value).encode(errors="replace").decode()
    if isinstance(value, int):
        return int(value) if abs(value) <= _MOST_INTEGER else _long(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _not_finite(value)
    if isinstance(value, dict):
        return {_key(name): _plain(each, depth + 1, left) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, depth + 1, left) for each in value]
    to_list = getattr(value, "tolist", None)  # of numpy and torch
    if callable(to_list):
        many = _count(value)
        if many > left[0]:
            raise NoAnswer(f"the answer has an array of {many:,} values")
        return _plain(to_list(), depth + 1, left)
    raise NoAnswer(
        f"the answer has a {type(value).__name__}: it is made of numbers, texts, lists, dicts, "
        "arrays and tensors"
    )


def _count(value: Any) -> int:
    for name in ("numel", "size"):
        many = getattr(value, name, None)
        many = many() if callable(many) else many
        if isinstance(many, int):
            return many
    return 1


def _key(name: Any) -> str:
    if not isinstance(name, (str, int, float)) and not hasattr(name, "item"):
        raise NoAnswer(f"the answer has a key of type {type(name).__name__}")
    return str(name).encode(errors="replace").decode()


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _long(value: int) -> str:
    digits = int(value.bit_length() * math.log10(2)) + 1
    return str(value) if digits < 1_000 else f"an integer of about {digits:,} digits"
