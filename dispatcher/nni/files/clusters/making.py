"""A section of ``trainingService`` in the making, and what all sections of clusters need."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dispatcher.experiment.draft import Draft
from dispatcher.experiment.fields import fold_word
from dispatcher.experiment.quantities import parse_size
from dispatcher.experiment.references import ENV, FILE, key_reference
from dispatcher.experiment.translated_keys import Does, Row, carry, given
from dispatcher.nni.files.sections import Find
from tuners.plain_json import JsonPath, written_path

BASE: JsonPath = ("trainingService",)

#: The image of NNI's own, which it takes for all jobs whose section names none.
IMAGE = "msranni/nni:latest"

#: Most allocations that a section may ask for.
_MOST_JOBS = 9_999

_EVERYWHERE = "0.0.0.0"  # noqa: S104 - where NNI's manager listens, for keys of ours alone

_OFF = (False, "false", "no", "off")

#: Keys of a section that stand at the top of our file.
_OF_THE_TOP = ("trialCommand", "trialCodeDirectory", "trialGpuNumber", "debug")

CLEAR_TEXT = (
    "it holds a secret in clear text: it is looked up there when needed and kept out of all logs; "
    "a file that only you can read would be safer"
)
LISTENS = "NNI's manager listens on all addresses of its machine; ours admits keys of its own only"
NO_ADDRESS = (
    "names no address at which pods reach this machine: NNI took one of its own choice",
    "write 'nniManagerIp: ADDRESS' at the top of the file, or 'jump: USER@HOST' in this section",
)

Take = Callable[[Any, JsonPath], None]
"""Takes the value of a key, and its path in the user's file."""


class Part(NamedTuple):
    """A section of the user's file, and its path there."""

    values: Any
    at: JsonPath


def exactly(rows: Mapping[str, Row]) -> Find:
    """Return a finder for keys of v1, which are spelt as they are listed."""
    return rows.get


def loosely(rows: Mapping[str, Row]) -> Find:
    """Return a finder that ignores case and underscores, as NNI does since v2."""
    folded = {fold_word(key): row for key, row in rows.items()}
    return lambda key: folded.get(fold_word(key))


class Making:
    """The section of one training service in the making.

    Args:
        draft: takes the translation.
        file: the values of the whole file, as read.
        origin: absolute path of the file, for references to secrets in it.
        at: the path in the file that stands for the section as a whole.

    Attributes:
        draft: the one given.
        reuses: whether a job takes trial after trial.
    """

    def __init__(self, draft: Draft, file: Mapping[str, Any], origin: str, at: JsonPath) -> None:
        self.draft = draft
        self.reuses = True
        self._file = {fold_word(key): (value, (key,)) for key, value in given(file)}
        self._origin = origin
        self._at = at
        self._volumes: list[tuple[dict[str, Any], JsonPath]] = []
        self._manager: tuple[Any, JsonPath] | None = None
        self._walks = False
        self._later: list[tuple[str, Any, str, JsonPath]] = []
        draft.origins[BASE] = at

    # -- reading -------------------------------------------------------------------------------

    def walk(self, part: Part, find: Find, special: Mapping[str, Take]) -> None:
        """Treat the keys of a section as their rows say; keys without one are taken for ours.

        Args:
            part: the section.
            find: finds the row of a key.
            special: takes the values of keys whose rows are special, by their folded names.
        """
        if not isinstance(part.values, Mapping):
            self.draft.refuse(part.at, "must be a section of keys", is_key=False)
            return
        self._walks = True
        spelt: dict[str, str] = {}
        for key, value in given(part.values):
            row, at = find(key), (*part.at, key)
            before = spelt.setdefault(fold_word(key), key)
            if row is None:
                text = "a key of bequeath's own"
                self.draft.put((*BASE, key), copy.deepcopy(value), at, text)
            elif row.does is Does.SPECIAL and before != key:
                self.draft.refuse(at, f"is {before!r} in another spelling", "keep one of the two")
            elif row.does is Does.SPECIAL:
                special[fold_word(key)](value, at)
            else:
                carry(self.draft, row, value, at, () if row.native in _OF_THE_TOP else BASE)
        self._walks = False
        for each in self._later:
            self.add(*each)
        self._later.clear()

    def inner(self, value: Any, at: JsonPath, known: Mapping[str, str]) -> dict[str, Any]:
        """Return the keys of a small section by their native names; refuse others.

        Args:
            value: of the section.
            at: its path.
            known: NNI's key → the name in the answer.
        """
        if not isinstance(value, Mapping):
            self.draft.refuse(at, "must be a section of keys", is_key=False)
            return {}
        folded = {fold_word(key): name for key, name in known.items()}
        found: dict[str, Any] = {}
        for key, each in given(value):
            name = folded.get(fold_word(key))
            if name is None:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"keys here are {', '.join(known)}"
                self.draft.refuse((*at, key), f"is no key of {written_path(at)!r}", hint)
            else:
                found[name] = (each, (*at, key))
        return found

    def top(self, key: str) -> tuple[Any, JsonPath] | None:
        """The value of a key at the top of the file, and its path; None if it has none."""
        return self._file.get(fold_word(key))

    def text(self, value: Any, at: JsonPath) -> str:
        """A value that must be text; empty, and refused, if it is none."""
        if isinstance(value, str) and value:
            return value
        self.draft.refuse(at, "must be text", is_key=False)
        return ""

    def mebibytes(self, value: Any, at: JsonPath) -> int:
        """A size of NNI's, whose bare numbers are MiB; some size, and refused, if it is none."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        is_number = isinstance(value, int) or str(value).strip().isdecimal()
        try:
            size = parse_size(f"{value}mb" if is_number else value)
        except ValueError as error:
            self.draft.refuse(at, str(error), is_key=False)
            return 1 << 10  # so that it is not missed once more
        return -(-size >> 20)

    # -- writing -------------------------------------------------------------------------------

    def has(self, key: str) -> bool:
        """Whether the section has a key so far, however it is spelt."""
        section = self.draft.values.get("trainingService")
        keys = section if isinstance(section, Mapping) else {}
        return fold_word(key) in {fold_word(str(each)) for each in keys}

    def put(self, key: str, value: Any, source: JsonPath, text: str = "") -> None:
        """Set a key of the section.

        Args:
            key: native.
            value: as it stands there.
            source: path in the user's file.
            text: why it is what it is; empty where that is plain.
        """
        self.draft.put((*BASE, key), value, source, text)

    def add(self, key: str, value: Any, text: str, source: JsonPath = ()) -> None:
        """Set a key unless the file has it, perhaps further below: what NNI does by itself.

        Args:
            key: native.
            value: as it stands there.
            text: why it is added.
            source: path in the user's file of what it follows from, if anything.
        """
        if self._walks:
            self._later.append((key, value, text, source))
        elif not self.has(key):
            self.put(key, value, source or self._at, text)

    def secret(self, key: str, value: Any, source: JsonPath) -> None:
        """Set a reference to a secret that stands in the user's file, and nowhere else.

        Args:
            key: native.
            value: the secret, or a reference to one.
            source: path in the user's file.
        """
        if isinstance(value, str) and value.startswith((ENV, FILE)):
            self.put(key, value, source)
        elif isinstance(value, bool | Mapping | list):
            self.draft.refuse(source, "must be text", "write 'env:NAME' or 'file:PATH'")
            self.put(key, "env:PATH", source)  # so that it is not missed once more
        else:
            where = "looked up in your file whenever it is needed, copied nowhere"
            self.put(key, key_reference(self._origin, source), source, where)
            self.draft.remark(CLEAR_TEXT)

    def volume(self, volume: dict[str, Any], source: JsonPath) -> None:
        """Add a volume of pods, behind those that the file has."""
        self._volumes.append((volume, source))

    def repeated(self, native: str) -> Take:
        """Return what takes a key of the top level that the section repeats."""
        return lambda value, at: self.draft.put((native,), value, at, "'trainingService' says so")

    def take_manager(self, value: Any, source: JsonPath) -> None:
        """Note the section's own ``nniManagerIp``."""
        self._manager = (value, source)

    def take_reuse(self, value: Any, source: JsonPath) -> None:
        """Take ``reuse`` or ``reuseMode``."""
        self.reuses = value not in _OFF
        text = "a job takes trial after trial" if self.reuses else "each trial has a job of its own"
        self.draft.drop(source, text)

    def common(self, platform: str) -> dict[str, Take]:
        """Return what takes the keys that all sections of v2 have.

        Args:
            platform: ours.
        """
        return {
            "platform": lambda value, at: self.put("platform", platform, at),
            "trialcommand": self.repeated("trialCommand"),
            "trialcodedirectory": self.repeated("trialCodeDirectory"),
            "trialgpunumber": self.repeated("trialGpuNumber"),
            "nnimanagerip": self.take_manager,
            "debug": self.repeated("debug"),
            "reusemode": self.take_reuse,
        }

    def take_gpus(self, value: Any, source: JsonPath) -> None:
        """Take the GPUs of a trial, which a job's node has."""
        self.draft.put(("trialGpuNumber",), value, source)
        self.add("gpus", value, "of a job's node", source)

    def drop(self, text: str) -> Take:
        """Return what notes of a key that it has no effect, and why none is needed."""
        return lambda value, at: self.draft.drop(at, text)

    def no_effect(self, text: str) -> Take:
        """Return what notes the same, where people should know it."""

        def take(value: Any, at: JsonPath) -> None:
            self.draft.drop(at, text)
            self.draft.remark(f"'{written_path(at)}' has no effect here: {text}")

        return take

    def finish_job(self) -> None:
        """Do as :meth:`finish` does, for a job of a service that knows no folders of ours yet."""
        gpus = self.top("trialGpuNumber")
        if gpus is not None:
            self.add("gpus", gpus[0], "of a job's node", gpus[1])
        if not self.has("codeFolder"):
            self.add("bringCode", True, "NNI copies the code, too")
        self.finish()

    def finish(self, *, dials: bool = False) -> None:
        """Add what NNI does by itself, and what follows from other parts of the file.

        Args:
            dials: whether jobs have no other way to this machine than its address.
        """
        for volume, source in self._volumes:
            section = self.draft.values.setdefault("trainingService", {})
            there = section.get("volumes", [])
            index = len(there) if isinstance(there, list) else 0
            for key, value in volume.items():
                self.draft.put((*BASE, "volumes", index, key), value, source)
        self._put_address(dials)
        concurrency, at = self.top("trialConcurrency") or (1, self._at)
        is_count = isinstance(concurrency, int) and not isinstance(concurrency, bool)
        most = min(max(concurrency, 1), _MOST_JOBS) if is_count else 1
        jobs = {"min": 0, "max": most, "idle": "10m", **({} if self.reuses else {"trials": 1})}
        self.add("allocations", jobs, "a job is asked for when a trial needs one, as in NNI", at)
        if not self.has("maxTrialNumberPerGpu"):
            self.add("slots", 1, "a job runs one trial at a time, as in NNI")

    def _put_address(self, dials: bool) -> None:
        value, at = self._manager or self.top("nniManagerIp") or (None, self._at)
        if self.has("headAddress") or self.has("jump"):
            if value is not None:
                self.draft.drop(at, "the section says itself how this machine is reached")
        elif value is not None:
            text = "where jobs of the cluster reach this machine"
            self.put("headAddress", value, at, text)
            if self.top("channel") is None:
                listen = {"transport": "tcp", "host": _EVERYWHERE, "beyondThisMachine": True}
                self.draft.put(("channel",), listen, at, LISTENS)
        elif dials:
            self.draft.refuse(self._at, *NO_ADDRESS, is_key=False)
            self.put("headAddress", "127.0.0.1", self._at)  # so that it is not missed once more
