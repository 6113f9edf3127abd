"""Run by another machine's Python: unpacks an archive of ours to where nothing is yet.

Arguments: the archive, the folder to make of it. The folder is there as a whole or not at all;
if somebody else was faster, theirs is taken: what is called by its content is the same.
"""

import os
import shutil
import sys
import tarfile


def main() -> None:
    """Unpack, rename, and leave nothing beside it."""
    archive, target = sys.argv[1], sys.argv[2]
    draft = f"{target}.{os.getpid()}.part"
    try:
        with tarfile.open(archive) as opened:
            if hasattr(tarfile, "tar_filter"):
                opened.extraction_filter = staticmethod(tarfile.tar_filter)
            opened.extractall(draft)  # noqa: S202 - it is ours
        try:
            os.rename(draft, target)
        except OSError:
            if not os.path.isdir(target):
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        os.unlink(archive)


main()
