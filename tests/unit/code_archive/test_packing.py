"""The same code gives the same archive; too much code is told by name."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dispatcher.code_archive import CodeChanged, Listing, TooMuchCode, pack_code, scan_code
from dispatcher.errors import UserError

_LETTERS = st.characters(exclude_characters="/\0", exclude_categories=["Cs"])
FILES = st.dictionaries(
    st.text(_LETTERS, min_size=1, max_size=20), st.binary(max_size=2000), max_size=5
)


def packed(folder: Path) -> bytes:
    into = io.BytesIO()
    pack_code(scan_code(folder), into)
    return into.getvalue()


def lay(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@given(FILES)
@settings(max_examples=30, deadline=None)
def test_what_is_packed_is_what_was_there(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = lay(Path(name), {f"x{key}": value for key, value in files.items()})
        with tarfile.open(fileobj=io.BytesIO(packed(folder))) as tar:
            found = {
                member.name: tar.extractfile(member).read()  # type: ignore[union-attr]
                for member in tar
            }
        expected = {entry.name: entry.path.read_bytes() for entry in scan_code(folder).entries}
        assert found == expected


def test_neither_time_nor_place_nor_order_nor_umask_is_in_it(tmp_path: Path) -> None:
    files = {"b/model.py": b"1", "a.py": b"2", "c/d/e.py": b"3", "run.sh": b"4"}
    one = lay(tmp_path / "one", files)
    two = lay(tmp_path / "elsewhere" / "two", dict(reversed(files.items())))
    os.utime(one / "a.py", (1, 1))
    (one / "a.py").chmod(0o600)
    (one / "b").chmod(0o700)
    (one / "run.sh").chmod(0o700)
    (two / "run.sh").chmod(0o755)
    assert packed(one) == packed(two)
    (two / "run.sh").chmod(0o644)
    assert packed(one) != packed(two)
    (two / "run.sh").chmod(0o755)
    (two / "a.py").write_bytes(b"x")
    assert packed(one) != packed(two)


def test_a_file_appears_whole_with_its_digest(tmp_path: Path) -> None:
    folder = lay(tmp_path / "code", {"a.py": b"12"})
    told = pack_code(scan_code(folder), tmp_path / "archive")
    content = (tmp_path / "archive").read_bytes()
    assert told.digest == hashlib.sha256(content).hexdigest()
    assert (told.files, told.nbytes, told.archive_bytes) == (1, 2, len(content))
    assert sorted(os.listdir(tmp_path)) == ["archive", "code"]


def test_links_stay_links_and_lead_nowhere_else(tmp_path: Path) -> None:
    folder = lay(tmp_path / "code", {"package/a.py": b"1", "other/b.py": b"2"})
    (folder / "package/near").symlink_to("a.py")
    (folder / "package/over").symlink_to("../other/b.py")
    (folder / "absolute").symlink_to(folder / "package")
    (folder / "by-name").symlink_to("../code/package")
    (folder / "dangling").symlink_to("nothing")
    links = {entry.name: entry.link for entry in scan_code(folder).entries if entry.link}
    assert links == {
        "package/near": "a.py",
        "package/over": "../other/b.py",
        "absolute": "package",
        "by-name": "package",
        "dangling": "nothing",
    }


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "package/../../outside", ".."])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, target: str) -> None:
    folder = lay(tmp_path / "code", {"package/a.py": b"1"})
    (tmp_path / "outside").mkdir()
    (folder / "link").symlink_to(target)
    with pytest.raises(UserError, match="leads out of the code folder") as caught:
        scan_code(folder)
    assert caught.value.where == str(folder / "link")
    (folder / ".bequeathignore").write_text("link\n")
    assert scan_code(folder).files == 2


def test_a_link_that_leads_out_by_way_of_another(tmp_path: Path) -> None:
    folder = lay(tmp_path / "code", {"a.py": b"1", "sub/b.py": b"1"})
    (tmp_path / "outside").mkdir()
    (tmp_path / "back").symlink_to(folder)
    (folder / "link").symlink_to("../back/a.py")
    (folder / "sub" / "out").symlink_to("../../outside")
    with pytest.raises(UserError, match=r"leads out .* \.\./\.\./outside"):
        scan_code(folder)


def test_too_many_files_and_bytes_name_the_largest(tmp_path: Path) -> None:
    folder = lay(
        tmp_path / "code",
        {f"small/{n}": b"" for n in range(9)} | {"big/x": b"x" * 5000, "a.py": b"1"},
    )
    with pytest.raises(TooMuchCode, match=r"11 files, and 10 may be sent; .* small/ \(9 files\)"):
        scan_code(folder, most_files=10)
    with pytest.raises(TooMuchCode, match=r"5\.0 kB, and 100 B may be sent; .* big/ \(5\.0 kB\)"):
        scan_code(folder, most_bytes=100)
    assert scan_code(folder, most_files=11, most_bytes=5001).files == 11


def test_folders_that_are_excluded(tmp_path: Path) -> None:
    folder = lay(tmp_path, {"a.py": b"", "experiments/x": b""})
    assert scan_code(folder, excluded=[folder / "experiments"]).files == 1


def test_what_is_no_file_is_skipped_and_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
    lay(tmp_path, {"a.py": b""})
    listing = scan_code(tmp_path)
    assert (listing.files, listing.skipped) == (1, ("pipe", "socket"))


def gone(file: Path) -> None:
    file.unlink()


def link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/etc/passwd")


def folder_there(file: Path) -> None:
    file.unlink()
    file.mkdir()


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize("change", [gone, link, folder_there, pipe])
@pytest.mark.parametrize("size", [0, 12])
def test_what_takes_a_files_place_before_it_is_packed(
    tmp_path: Path, change: Callable[[Path], None], size: int
) -> None:
    lay(tmp_path, {"a.py": b"12", "b.py": b"x" * size})
    listing = scan_code(tmp_path)
    change(tmp_path / "b.py")
    with pytest.raises(UserError) as caught:
        pack_code(listing, io.BytesIO())
    assert caught.value.where == str(tmp_path / "b.py")


SIZES = st.one_of(st.integers(0, 600), st.sampled_from([511, 512, 513, 10_240, 1 << 20]))


@given(listed=SIZES, there=SIZES)
@settings(max_examples=60, deadline=None)
@example(listed=0, there=1)
@example(listed=511, there=512)  # what a block of the archive would have had room for
@example(listed=12, there=11)
def test_a_file_is_packed_whole_or_its_change_is_named(listed: int, there: int) -> None:
    """Whether it grows or shrinks between the listing and the packing."""
    with tempfile.TemporaryDirectory() as name:
        folder = lay(Path(name), {"a.py": b"1", "b.py": b"x" * listed})
        listing = scan_code(folder)
        (folder / "b.py").write_bytes(b"y" * there)
        into = io.BytesIO()
        if listed != there:
            with pytest.raises(CodeChanged, match="changed while") as caught:
                pack_code(listing, into)
            assert caught.value.where == str(Path(os.path.realpath(folder)) / "b.py")
            return
        pack_code(listing, into)
        into.seek(0)
        with tarfile.open(fileobj=into) as tar:
            found = tar.extractfile("b.py")
            assert found is not None
            assert found.read() == b"y" * there


class Meddler(io.BytesIO):
    """An archive whose first bytes make somebody write to a file that is being packed."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        super().__init__()
        self._meddle: Callable[[], object] | None = meddle

    def write(self, data: Any) -> int:
        if self._meddle is not None:
            self._meddle, meddle = None, self._meddle
            meddle()
        return super().write(data)


@pytest.mark.parametrize("size", [1 << 19, (1 << 21) + 1, (1 << 21) + 4096])
def test_a_file_that_is_written_to_while_it_is_packed(tmp_path: Path, size: int) -> None:
    """What it had when it was listed would arrive without an error: half of what was written."""
    file = lay(tmp_path, {"a.bin": b"x" * (1 << 21)}) / "a.bin"
    os.utime(file, (1, 1))  # the clock of the file system may be coarse
    listing = scan_code(tmp_path)
    with pytest.raises(CodeChanged, match="changed while"):
        pack_code(listing, Meddler(lambda: os.truncate(file, size)))


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        scan_code(tmp_path / "none")


def test_nobody_but_the_owner_reads_it(tmp_path: Path) -> None:
    """Mutation: modes of their own choosing: 0600 files were 0644 in a file that all could read."""
    folder = lay(tmp_path / "code", {"a.py": b"1", "sub/run.sh": b"2"})
    (folder / "sub/run.sh").chmod(0o755)
    before = os.umask(0)
    try:
        pack_code(scan_code(folder), tmp_path / "archive")
    finally:
        os.umask(before)
    assert (tmp_path / "archive").stat().st_mode & 0o777 == 0o600
    with tarfile.open(tmp_path / "archive") as tar:
        modes = {member.name: member.mode for member in tar}
    assert modes == {"a.py": 0o600, "sub": 0o700, "sub/run.sh": 0o700}


SECRET_NAMES = (".env", ".env.local", "key/x.pem", "id_rsa", "id_ed25519", ".netrc", ".aws/keys")


def test_likely_secrets_are_left_out(tmp_path: Path) -> None:
    code = {"a.py": b"", "id_mapping.py": b"", "environment.py": b"", "keys.py": b""}
    folder = lay(tmp_path, dict.fromkeys(SECRET_NAMES, b"SECRET") | code)
    listing = scan_code(folder)
    assert {entry.name for entry in listing.entries} == {*code, "key"}
    assert set(listing.secrets) == {*SECRET_NAMES, ".aws"} - {".aws/keys"}
    (folder / ".bequeathignore").write_text("!.env\nkeys.py\n")
    again = scan_code(folder)
    names = {entry.name for entry in again.entries}
    assert ".env" in names
    assert "id_rsa" not in names
    assert "keys.py" not in again.secrets


@pytest.mark.parametrize("name", ["key.txt", "sub/a [b]*?.txt", "!x", "#y", "back\\slash", "end "])
def test_files_that_references_name_are_left_out(tmp_path: Path, name: str) -> None:
    folder = lay(tmp_path / "code", {name: b"SECRET", "a.py": b"", "sub/a b.txt": b"", "x": b""})
    (tmp_path / "link").symlink_to(folder)
    for secret in (folder / name, tmp_path / "link" / name):
        listing = scan_code(tmp_path / "link", secrets=[secret, tmp_path / "elsewhere"])
        assert listing.secrets == (name,)
        assert b"SECRET" not in packed_listing(listing)
    assert {"a.py", "sub/a b.txt", "x"} <= {entry.name for entry in listing.entries}


def packed_listing(listing: Listing) -> bytes:
    into = io.BytesIO()
    pack_code(listing, into)
    return into.getvalue()
