"""The places of an experiment's files.

The experiment's folder holds what must last; the run folder holds its sockets and is short, since
the path of a socket is limited to about a hundred bytes.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from dispatcher.errors import PermanentBackendError, UserError
from dispatcher.folders.names import (
    CALLBACKS_LOG_NAME,
    CHAOS_LOG_NAME,
    CONFIG_NAME,
    HEAD_LOG_NAME,
    HEAD_STDERR_NAME,
    LEADER_NAME,
    LOCK_NAME,
    LOGS,
    RUN_FILE_NAME,
    SHARED_NAME,
    SINKS_LOG_NAME,
    STORE_NAME,
    TRIALS,
    TUNER_LOG_NAME,
)
from dispatcher.folders.ownership import ID_LETTERS
from dispatcher.folders.small_file import read_small
from trial_runtime.durable_file import Draft
from trial_runtime.failpoints import failpoint
from trial_runtime.run_folder import RunFolderTaken, is_private, run_folder_below

#: The users with whom an experiment is shared → the bits that let them read.
_READERS = {"nobody": 0, "group": stat.S_IRGRP, "all": stat.S_IRGRP | stat.S_IROTH}

_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # no letters that are taken for one another


@dataclass(frozen=True, slots=True)
class ExperimentFolder:
    """Names within an experiment's folder."""

    path: Path

    @property
    def id(self) -> str:
        """The experiment's id is its folder's name."""
        return self.path.name

    @property
    def config(self) -> Path:
        """The resolved experiment file."""
        return self.path / CONFIG_NAME

    @property
    def shared_config(self) -> Path:
        """The same with secrets masked, if the experiment is shared."""
        return self.path / SHARED_NAME

    def read_config(self) -> str:
        """The resolved experiment file; of somebody else's, the one with secrets masked.

        Raises:
            PermanentBackendError: there is none: the process that made the folder died meanwhile.
        """
        try:
            try:
                return read_small(self.config).decode()
            except PermissionError:
                if not self.shared_config.exists():
                    raise
                return read_small(self.shared_config).decode()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise PermanentBackendError(
                f"the experiment cannot be read: {why}",
                hint="if it was never laid down completely, create it again",
                where=str(self.config),
            ) from error

    def write_config(self, text: str, shared: str = "") -> None:
        """Replace the resolved experiment file, durably and all at once: a process that dies
        meanwhile leaves the old one or the new one.

        Args:
            text: the file; nobody else may read it, since secrets may be written out in it.
            shared: the same as others may see it; whoever may read the folder may read this.
        """
        with ExitStack() as stack:
            drafts = []
            if shared:
                mode = 0o600 | self.path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)
                draft = Draft(self.shared_config, shared.encode(), mode=mode)
                drafts.append(stack.enter_context(draft))
            drafts.append(stack.enter_context(Draft(self.config, text.encode())))
            failpoint("config.drafted")
            for draft in drafts:  # none before there is room for all
                draft.place()

    def change_config(self, text: str, shared: str = "") -> None:
        """As :meth:`write_config`, for a user who has asked for it: no head ends by that.

        Raises:
            UserError: the disk does not take it.
        """
        try:
            self.write_config(text, shared)
        except OSError as error:
            raise UserError(
                f"the change cannot be written down: {error.strerror}",
                hint="free space there, or look at the disk, and try again",
                where=str(self.config),
            ) from error

    @property
    def journal(self) -> Path:
        """The journal, which is the truth."""
        return self.path / STORE_NAME

    @property
    def logs(self) -> Path:
        """Logs of head, tuner host and agent."""
        return self.path / LOGS

    @property
    def head_log(self) -> Path:
        """The log of the heads."""
        return self.logs / HEAD_LOG_NAME

    @property
    def head_stderr(self) -> Path:
        """The errors that a head in the background has printed."""
        return self.logs / HEAD_STDERR_NAME

    @property
    def tuner_log(self) -> Path:
        """The output of the tuner's process."""
        return self.logs / TUNER_LOG_NAME

    @property
    def sinks_log(self) -> Path:
        """The troubles of the process that feeds the sinks."""
        return self.logs / SINKS_LOG_NAME

    @property
    def callbacks_log(self) -> Path:
        """The output of callbacks, and their failures."""
        return self.logs / CALLBACKS_LOG_NAME

    @property
    def chaos_log(self) -> Path:
        """The faults that `bequeath chaos` has planted."""
        return self.logs / CHAOS_LOG_NAME

    @property
    def lock(self) -> Path:
        """The file that the head which leads has locked."""
        return self.path / LOCK_NAME

    @property
    def leader(self) -> Path:
        """The record of the head that leads, or led last."""
        return self.path / LEADER_NAME

    @property
    def run_file(self) -> Path:
        """The address at which the head that runs can be asked."""
        return self.path / RUN_FILE_NAME

    def trial(self, number: int) -> Path:
        """The folder of a trial that runs on this machine, or whose files were fetched."""
        return self.path / TRIALS / str(number)

    def attempt(self, trial: int, number: int) -> Path:
        """The folder of one attempt to run that trial."""
        return self.trial(trial) / str(number)

    @property
    def code(self) -> Path:
        """The copy of the code directory, if the file asks for one."""
        return self.path / "code"

    @property
    def weights(self) -> Path:
        """The weights root, if the file names no other."""
        return self.path / "weights"

    @property
    def keys(self) -> Path:
        """CURVE keys, mode 0700."""
        return self.path / "keys"

    @property
    def reports(self) -> Path:
        """Reports of stalls."""
        return self.path / "reports"

    @property
    def restore(self) -> Path:
        """The calls that a tuner host which starts again has to repeat."""
        return self.path / "tuner_restore.msgpack"

    @property
    def shown(self) -> Path:
        """The metrics that trials have reported so far, for a tuner host that asks."""
        return self.path / "tuner_restore.msgpack.shown"

    def share(self, share_with: str) -> None:
        """Let others look: into the folder, and into the store if it is there already.

        Args:
            share_with: ``nobody``, ``group`` or ``all``.
        """
        readers = _READERS[share_with]
        kept = stat.S_IMODE(self.path.stat().st_mode) & stat.S_ISGID
        self.path.chmod(kept | stat.S_IRWXU | readers | readers >> 2)
        if self.journal.exists():
            for name in ("", "-wal", "-shm"):
                path = self.journal.with_name(f"{self.journal.name}{name}")
                if path.exists():
                    path.chmod(stat.S_IRUSR | stat.S_IWUSR | readers)

    @classmethod
    def make(
        cls, base: Path, ident: str, share_with: str = "nobody", *, exist_ok: bool = False
    ) -> ExperimentFolder:
        """A new folder below ``base``.

        Args:
            base: made if it is missing.
            ident: its name.
            share_with: the users who may look into it: ``nobody``, ``group`` or ``all``.
            exist_ok: take one that is there: empty, or left by a process that died in making it.

        Raises:
            PermanentBackendError: it cannot be made.
        """
        folder = cls(base / ident)
        try:
            folder.path.mkdir(parents=True, mode=0o700, exist_ok=exist_ok)
            folder.share(share_with)
            folder.logs.mkdir(exist_ok=exist_ok)
            folder.keys.mkdir(mode=0o700, exist_ok=exist_ok)
        except OSError as error:
            raise PermanentBackendError(
                f"cannot make the experiment's folder: {error.strerror or error}",
                hint="choose another 'experimentWorkingDirectory'",
                where=str(folder.path),
            ) from error
        return folder


def new_id(name: str) -> str:
    """An id for an experiment of this name: the name and six characters of chance."""
    slug = re.sub(f"[^{ID_LETTERS}]+", "-", name).strip("-")[:40] or "experiment"
    tail = "".join(secrets.choice(_ALPHABET) for _ in range(6))
    return f"{slug}-{tail}"


def run_folder(experiment: Path, *, before: str | None = None) -> Path:
    """The folder for the experiment's sockets: private, short, the same for each head.

    Args:
        experiment: the experiment's folder.
        before: where the sockets of the head before were. Agents look for the next head there,
            even if it was started in another environment (by systemd, say) with another idea
            of where sockets belong. Taken if it is still there, and ours.

    Raises:
        PermanentBackendError: somebody else owns the folder we would use.
    """
    if before and is_private(Path(before)):
        return Path(before)
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    try:
        return run_folder_below(base, experiment)
    except RunFolderTaken as error:
        raise PermanentBackendError(
            f"{error.where} {error.message}",
            hint="remove it, or set XDG_RUNTIME_DIR to a folder of your own",
        ) from None
