"""Whether data files are mapped or read: by the file system they lie on."""

from __future__ import annotations

from trial_runtime.weights.read.mapped import MappedFiles
from trial_runtime.weights.read.opening import OpenedManifest
from trial_runtime.weights.read.read_in import ReadFiles
from trial_runtime.weights.read.tensor_files import TensorFiles
from trial_runtime.weights.storage.mounted import mount_of


def tensor_files(opened: OpenedManifest) -> TensorFiles:
    """The data files of a manifest: mapped where the disk is this machine's own, read where a
    file system is shared."""
    mount = mount_of(opened.folder)
    return ReadFiles(opened) if mount is not None and mount.shared else MappedFiles(opened)
