"""A trial's side of a shared store of weights: a named sequence of versions.

Each version is a folder of its own, complete and never changed, in which only those tensors lie
that differ from the version before. The head gives numbers: an offer becomes version ``n + 1``
only if it was made from version ``n`` and that one is still the newest.
"""

from __future__ import annotations

import os
import secrets
import shutil
from typing import TYPE_CHECKING, Any, Optional

from trial_runtime import session as _session
from trial_runtime import trial_wire as wire
from trial_runtime.api_errors import NoSharedStore, StoreConflict
from trial_runtime.failpoints import failpoint
from trial_runtime.session_file import PinnedVersion

if TYPE_CHECKING:
    from trial_runtime.merging import MergeRule

#: Others may be quicker this often in a row before a publisher gives up.
TRIES = 100


class SharedStore:
    """One shared store as this trial sees it. Get it from :func:`trial_runtime.shared_store`.

    It stands at one version, its *base*: the one that the tuner has pinned for this trial, then
    what was published here last. Versions of others do not move it. One thread at a time.
    """

    def __init__(self, name: str) -> None:
        self._session = _session.current()
        file = self._session.file
        self.name = name
        self._folder = file.stores or os.path.join(file.folder, "stores")
        if file.attempt and not file.stores:
            raise NoSharedStore(
                "this experiment has no shared stores",
                hint="they need a weights root, and a head of this version",
            )
        pinned = [each for each in file.versions if each.store == name]
        self._base: Optional[PinnedVersion] = pinned[0] if pinned else None
        self._newest = self._base
        self._nbytes = 0  # of the state that was written last

    @property
    def version(self) -> int:
        """The number of the version this stands at; 0 before the first."""
        return self._base.number if self._base is not None else 0

    @property
    def newest(self) -> int:
        """The newest version that this process has heard of: from refusals of what it offered."""
        return self._newest.number if self._newest is not None else 0

    def load(self, into: Any = None, **options: Any) -> Any:
        """Load the version this stands at; its digest is checked.

        Args:
            into: as for :func:`trial_runtime.load_weights`.
            **options: as for :func:`trial_runtime.weights.load`.

        Returns:
            None before the first version. Else what :func:`trial_runtime.load_weights` returns.

        Raises:
            WeightsError: it is missing, torn, changed, or does not fit.
        """
        return None if self._base is None else self._load(self._base, into, **options)

    def advance(self) -> int:
        """Stand at the newest version that this process has heard of; its number."""
        self._base = self._newest
        return self.version

    def publish(self, state: Any, merge: Optional[MergeRule] = None) -> int:
        """Make a state the next version; blocks until the head has accepted it durably.

        Without ``merge`` that fails if others have published since the version this stands at.
        With one, the newest is loaded then, what was changed on both sides is brought together,
        and offered again, until nobody was quicker.

        Args:
            state: as for :func:`trial_runtime.save_weights`: all of it, not only what changed.
            merge: what happens to a tensor that this trial and another one have both changed;
                what only one of them changed is taken from it in any case. ``"changed"`` raises,
                ``"mine"`` and ``"theirs"`` take that side, ``"mean"`` the mean, ``"add"`` theirs
                plus the change made here; or a function of (name, base, mine, theirs), where
                None stands for nothing there.

        Returns:
            The number of the version, which this stands at from now on. What was merged into it
            is read back by :meth:`load`.

        Raises:
            StoreConflict: another version came first (see ``newest`` and :meth:`advance`), or
                both changed what the merge has no answer to. What was written is removed.
            NoSharedStore: nothing can ever be published under this name.
            WeightsError: the state cannot be stored, or the disk is full.
        """
        if merge is not None and not callable(merge):
            from trial_runtime.merging import RULES

            if merge not in RULES:
                raise ValueError(f"merge is one of {', '.join(RULES)} or a function, not {merge!r}")
        mine = self._write(state, self._base)
        offer, base = mine, self._base
        refused: list[PinnedVersion] = []  # for good: what is not known to be may be a version
        try:
            for _ in range(TRIES):
                if self._offer(offer, base):
                    return self.version
                refused.append(offer)
                if merge is None:
                    raise StoreConflict(
                        f"version {self.newest} of {self.name!r} came first; this was made from "
                        f"version {self.version}",
                        hint="publish(state, merge=…), or advance() and load() what is there now",
                    )
                base = self._newest
                offer = self._write(self._merged(mine, base, merge), base)
        finally:
            for each in refused:
                shutil.rmtree(self._path(each.path), ignore_errors=True)
        raise StoreConflict(f"others were quicker {TRIES} times in a row at {self.name!r}")

    def _merged(self, mine: PinnedVersion, theirs: Optional[PinnedVersion], rule: Any) -> Any:
        from trial_runtime.merging import merge

        base = None if self._base is None else self._load(self._base)
        assert theirs is not None
        merged = merge(base, self._load(mine), self._load(theirs), rule)
        failpoint("store.state.merged")
        return merged

    def _write(self, state: Any, parent: Optional[PinnedVersion]) -> PinnedVersion:
        """Save a state in a folder that nobody else can name: it becomes a version, or goes."""
        from trial_runtime import weights

        file = self._session.file
        owner = f"{file.trial}.{file.attempt}"
        path = f"{self.name}/{owner}-{secrets.token_hex(8)}"
        try:
            published = weights.save(
                state,
                self._path(path),
                parent=None if parent is None else self._path(parent.path),
                parent_digest=None if parent is None else parent.digest,
                root=self._folder,
                writer=f"{owner}, for the shared store {self.name}",
            )
        except BaseException:
            shutil.rmtree(self._path(path), ignore_errors=True)  # it was not offered
            raise
        self._nbytes = published.bytes_total
        failpoint("store.version.written")
        return PinnedVersion(self.name, 0, path, published.digest)

    def _offer(self, written: PinnedVersion, base: Optional[PinnedVersion]) -> bool:
        number = 0 if base is None else base.number
        answer = self._session.offer(
            wire.Offered(self.name, number, written.path, written.digest, self._nbytes)
        )
        failpoint("store.offer.answered")
        if answer.refusal:
            shutil.rmtree(self._path(written.path), ignore_errors=True)
            raise NoSharedStore(answer.refusal)
        self._newest = answer.newest
        if answer.accepted:
            self._base = answer.newest
        return answer.accepted

    def _load(self, version: PinnedVersion, into: Any = None, **options: Any) -> Any:
        from trial_runtime import weights

        options.setdefault("stale_timeout_s", self._session.file.stale_timeout_s)
        return weights.load(
            self._path(version.path), into, digest=version.digest, root=self._folder, **options
        )

    def _path(self, path: str) -> str:
        return os.path.join(self._folder, path)
