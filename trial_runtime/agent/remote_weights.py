"""The agent's part of a weights root that is no folder.

Each attempt has a *view*: a folder of its own that looks like the weights root to it. Before
it starts its parent's weights are copied there; when it has ended, the weights it published are
copied to the remote root, and the view is removed. So an attempt that was given up and runs on
touches nothing of its successor's.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from functools import partial
from typing import TYPE_CHECKING, Final

from trial_runtime import facts, wire
from trial_runtime.agent.config import AgentConfig, CacheSpec
from trial_runtime.errors import WeightsError
from trial_runtime.failpoints import failpoint
from trial_runtime.weights.storage.paths import STORES_NAME, open_regular, resolve_in_root

if TYPE_CHECKING:
    from trial_runtime.weights.read.plain import PublishedDigest
    from trial_runtime.weights.remote.place import Place
    from trial_runtime.weights.remote.pulling import Cache
    from trial_runtime.weights.remote.record import Kind, StoredFile

_VIEWS: Final = ".views"

_log = logging.getLogger("bequeath.agent")


def view_of(config: AgentConfig, trial: int, attempt: int) -> str:
    """The folder that is the weights root for an attempt.

    Args:
        config: of the agent.
        trial: the trial's number.
        attempt: the attempt's number.
    """
    if config.remote is None:
        return config.weights_root
    return os.path.join(os.path.realpath(config.weights_root), _VIEWS, f"{trial}.{attempt}")


def remote_weights(config: AgentConfig) -> RemoteWeights | None:
    """The agent's access to its weights root; None if that is a folder."""
    if config.remote is None:
        return None
    from trial_runtime.weights.cache.cache import WeightsCache
    from trial_runtime.weights.cache.place import default_folder
    from trial_runtime.weights.remote.place import Place

    spec = config.cache or CacheSpec(0)
    folder = os.path.expanduser(spec.folder) if spec.folder else default_folder()
    cache = WeightsCache(folder, spec.max_bytes)
    return RemoteWeights(config, Place(config.remote, owner=config.worker), cache)


def secrets_of(config: AgentConfig) -> list[str]:
    """The secrets to mask in this agent's messages and logs."""
    if config.remote is None:
        return []
    from trial_runtime.weights.remote.credentials import secrets

    return secrets(config.remote.options)


class RemoteWeights:
    """Copies parents' weights to views, and published weights to the remote root.

    Methods run in the helper's threads.

    Args:
        config: of the agent; names a remote root.
        place: the remote root.
        cache: of this host.
    """

    def __init__(self, config: AgentConfig, place: Place, cache: Cache) -> None:
        self._config = config
        self._place = place
        self._cache = cache
        self._lock = threading.Lock()
        self._busy: set[tuple[int, int]] = set()
        self._unwanted: set[tuple[int, int]] = set()
        self._inherited: dict[tuple[int, int], dict[str, StoredFile]] = {}
        self._tidied = False
        # Views of an agent before: its attempts are over, and nobody will push them.
        shutil.rmtree(os.path.dirname(view_of(config, 0, 0)), ignore_errors=True)

    def prepare(self, order: facts.StartAttempt) -> None:
        """Make an attempt's view, with its parent's weights in it. Blocks for the network.

        Raises:
            WeightsError: the parent's weights cannot be had.
            OSError: the view cannot be made.
        """
        key = (order.trial, order.attempt)
        with self._lock:
            self._busy.add(key)
        try:
            self._tidy()
            view = view_of(self._config, *key)
            shutil.rmtree(view, ignore_errors=True)
            os.makedirs(view, mode=0o700)
            for version in order.versions:
                self.pull_version(key, version.path, version.digest)
            path = order.restore_path
            if version_of(order):
                pass  # among those that it reads
            elif path is not None and not os.path.isabs(path):
                self._pull(key, view, path, order.restore_digest, order.restore_kind)
        finally:
            with self._lock:
                self._busy.discard(key)
                unwanted = key in self._unwanted
                self._unwanted.discard(key)
            if unwanted:
                self.discard(key)

    def _pull(
        self, key: tuple[int, int], view: str, path: str, digest: str | None, kind: str | None
    ) -> None:
        from trial_runtime.weights.remote.pulling import pull

        if digest is None:
            raise WeightsError(
                f"nothing of this experiment was published at {path!r}",
                hint="trials inherit from trials of their experiment; other weights may lie in a "
                "folder of weightsReadRoots",
                where=self._place.root.shown,
            )
        ours: Kind = "bequeath" if kind == "bequeath" else "files"
        record = pull(self._place, self._cache, view, path, digest=digest, kind=ours)
        with self._lock:
            known = self._inherited.setdefault(key, {})
            known.update((file.path, file) for file in record.files)
        failpoint("agent.parent.pulled")

    def pull_version(self, key: tuple[int, int], path: str, digest: str) -> None:
        """Copy a version of a shared store into an attempt's view. Blocks.

        Args:
            key: trial and attempt.
            path: of the version, relative to the folder of the stores.
            digest: of the version.

        Raises:
            WeightsError: it cannot be had.
            OSError: the view cannot be written to.
        """
        self._pull(key, view_of(self._config, *key), _stored(path), digest, "bequeath")

    def push_version(self, key: tuple[int, int], offer: wire.Offered) -> None:
        """Copy a version that an attempt offers to a shared store to the remote root. Blocks.

        Raises:
            WeightsError: it is not there as announced, or the remote root does not take it.
            OSError: the view cannot be read.
        """
        from trial_runtime.weights.remote.pushing import push

        view = view_of(self._config, *key)
        with self._lock:
            inherited = dict(self._inherited.get(key, {}))
        pushed = push(
            self._place,
            view,
            _stored(offer.path),
            writer=f"{key[0]}.{key[1]}, for the shared store {offer.store}",
            inherited=inherited,
            announced=offer.digest,
        )
        with self._lock:
            known = self._inherited.setdefault(key, {})
            known.update((file.path, file) for file in pushed.record.files)
        self._keep_copies(view, _stored(offer.path), pushed.record.files)

    def drop_version(self, key: tuple[int, int], path: str) -> None:
        """Remove a refused version from the remote root: no reader knows of it. Blocks.

        Remains after a fault go with the head's next sweep after the attempt.
        """
        from trial_runtime.weights.remote.record import objects_of, records_of

        stored = _stored(path)
        with self._lock:
            known = self._inherited.get(key, {})
            for each in [name for name, file in known.items() if file.owner == stored]:
                del known[each]
        try:
            for folder in (records_of(stored), objects_of(stored)):
                for name in self._place.listing(folder):
                    self._place.remove(name)
                self._place.remove_folder(folder)
        except WeightsError as error:
            _log.warning("what was refused of %s stays for now: %s", path, error)

    def _tidy(self) -> None:
        with self._lock:
            first, self._tidied = not self._tidied, True
        if first:
            try:
                self._place.forget_uploads()
            except WeightsError as error:
                _log.warning("what an agent before has left half written stays: %s", error)

    def publish(self, order: facts.StartAttempt, announced: str | None) -> PublishedDigest:
        """Copy the weights that an attempt left at its save path to the remote root. Blocks.

        Args:
            order: the attempt's.
            announced: the digest that the trial announced; None for plain files.

        Raises:
            WeightsError: there is nothing, or the remote root does not take it.
            OSError: the view cannot be read.
        """
        from trial_runtime.weights.remote.pushing import push

        assert order.save_path is not None, "asked for attempts that save"
        key = (order.trial, order.attempt)
        view = view_of(self._config, *key)
        with self._lock:
            inherited = self._inherited.get(key, {})
        pushed = push(
            self._place,
            view,
            resolve_in_root(view, order.save_path),
            writer=f"{order.trial}.{order.attempt}",
            inherited=inherited,
            announced=announced,
        )
        self._keep_copies(view, order.save_path, pushed.record.files)
        return pushed.published

    def _keep_copies(self, view: str, save_path: str, files: tuple[StoredFile, ...]) -> None:
        """Put the files into the host's cache: children are likely to start here."""
        for file in files:
            if file.owner == save_path:
                try:
                    fd, _ = open_regular(os.path.join(view, file.path))
                    with open(fd, "rb") as source:
                        copy = partial(shutil.copyfileobj, source, length=1 << 20)
                        with self._cache.get(file.blake3, file.nbytes, copy):
                            pass
                except (WeightsError, OSError):
                    return  # no room: they fetch them

    def discard(self, key: tuple[int, int]) -> None:
        """Remove the view of an attempt that is over."""
        with self._lock:
            self._inherited.pop(key, None)
            if key in self._busy:
                self._unwanted.add(key)
                return
        shutil.rmtree(view_of(self._config, *key), ignore_errors=True)

    def close(self) -> None:
        """Remove the views that are left: the agent leaves, and all attempts are over."""
        above = os.path.dirname(view_of(self._config, 0, 0))
        for name in os.listdir(above) if os.path.isdir(above) else ():
            shutil.rmtree(os.path.join(above, name), ignore_errors=True)


def _stored(path: str) -> str:
    """The path of a version in a view, which is also its name on the remote root."""
    return f"{STORES_NAME}/{path}"


def version_of(start: facts.StartAttempt) -> str:
    """The path below the stores of the version that an attempt starts from; empty if none."""
    above, _, below = (start.restore_path or "").partition("/")
    return below if above == STORES_NAME else ""
