"""The same code gives the same archive; too much code is told by name."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
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


def test_a_file_that_changes_meanwhile(tmp_path: Path) -> None:
    lay(tmp_path, {"a.py": b"12", "b.py": b"12"})
    listing = scan_code(tmp_path)
    (tmp_path / "b.py").write_bytes(b"1")
    with pytest.raises(CodeChanged) as caught:
        pack_code(listing, io.BytesIO())
    assert caught.value.where.endswith("b.py")
    (tmp_path / "b.py").unlink()
    with pytest.raises(CodeChanged, match="went away"):
        pack_code(listing, io.BytesIO())
    (tmp_path / "b.py").symlink_to("/etc/passwd")
    with pytest.raises(UserError):
        pack_code(listing, io.BytesIO())


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
