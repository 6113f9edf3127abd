"""A file of torch.save is unpickled by a torch that is a fence, and takes no more than it is."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from trial_runtime.errors import CorruptWeights, WeightsError  # noqa: E402
from trial_runtime.weights import load  # noqa: E402

pytestmark = pytest.mark.torch

#: Records of a zip file: APPNOTE 4.3.16, 4.3.15, 4.3.14 and 4.3.12.
END = struct.Struct("<4s4H2LH")
LOCATOR = struct.Struct("<4sLQL")
END_64 = struct.Struct("<4sQ2H2L4Q")
RECORD = struct.Struct("<4s6H3L5H2L")


@pytest.fixture
def file(root: Path) -> Path:
    torch.save({"w": torch.arange(1000.0), "more": [torch.ones(3)]}, root / "t.pt")
    return root / "t.pt"


@pytest.mark.parametrize(
    "version, safe",
    [("1.13.1", False), ("2.5.1+cu121", False), ("2.9.1", False), ("2.10.0a0+git1", False),
     ("2.10.0rc2", False), ("2.10.0.dev20260101", False), ("", False), ("custom", False),
     ("2.10.0", True), ("2.10.1+cpu", True), ("2.13.0+cpu", True), ("3.0.0", True)],
)  # fmt: skip
def test_a_torch_that_is_no_fence_reads_no_pickle(
    file: Path, monkeypatch: pytest.MonkeyPatch, version: str, safe: bool
) -> None:
    opened = []
    real = torch.load
    monkeypatch.setattr(torch, "load", lambda *a, **o: opened.append(1) or real(*a, **o))
    monkeypatch.setattr(torch, "__version__", version)
    if safe:
        assert load(file)["w"][999] == 999
    else:
        with pytest.raises(WeightsError, match="CVE-2025-32434") as caught:
            load(file)
        assert "torch>=2.10" in caught.value.hint
    assert bool(opened) == safe


def repacked(path: Path, method: int = zipfile.ZIP_STORED, comment: bytes = b"") -> None:
    source = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
    with zipfile.ZipFile(path, "w", method) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
        target.comment = comment


def test_compressed_records_are_refused_before_anything_is_unpacked(file: Path) -> None:
    repacked(file)
    assert load(file)["w"][999] == 999
    repacked(file, zipfile.ZIP_DEFLATED)
    with pytest.raises(CorruptWeights, match="a record is compressed, which torch never does"):
        load(file)


def test_records_that_share_their_bytes_are_counted_each(file: Path) -> None:
    raw = file.read_bytes()
    end = END.unpack_from(raw, len(raw) - 22)
    count, length, begin = end[4:7]
    directory = raw[begin : begin + length] * 100
    many = (*end[:3], count * 100, count * 100, len(directory), begin, 0)
    file.write_bytes(raw[:begin] + directory + END.pack(*many))
    with pytest.raises(CorruptWeights, match="would take more than"):
        load(file)


def test_only_the_form_that_torch_writes_is_read(file: Path) -> None:
    raw = file.read_bytes()
    repacked(file, comment=b"another directory may hide here")
    with pytest.raises(CorruptWeights, match="not at its end"):
        load(file)
    for cut in (5, 100, len(raw) - 1):
        file.write_bytes(raw[:cut])
        with pytest.raises(CorruptWeights):
            load(file)
    many = list(END.unpack_from(raw, len(raw) - 22))
    many[4] = many[3] = 0xFFFF
    file.write_bytes(raw[: many[5] + many[6]] + END.pack(*many))
    with pytest.raises(CorruptWeights, match="directory cannot be read"):
        load(file)


@pytest.mark.parametrize("size, fits", [(None, True), (5 << 30, False)])
def test_sizes_beyond_four_gigabytes_stand_elsewhere_in_the_directory(
    file: Path, size: int | None, fits: bool
) -> None:
    """As torch writes large files: sizes in an extra field, counts in a directory of 64 bits."""
    raw = file.read_bytes()
    end = END.unpack_from(raw, len(raw) - 22)
    count, begin = end[4], end[6]
    at, records = begin, b""
    for _ in range(count):
        record = list(RECORD.unpack_from(raw, at))
        name, extra, note = record[10:13]
        text = raw[at + RECORD.size :][:name]
        at += RECORD.size + name + extra + note
        wide = struct.pack("<HHQQ", 1, 16, size or record[9], size or record[8])
        record[8] = record[9] = 0xFFFFFFFF
        record[11], record[12] = len(wide), 0
        records += RECORD.pack(*record) + text + wide
    where = begin + len(records)
    wide_end = END_64.pack(b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(records), begin)
    locator = LOCATOR.pack(b"PK\x06\x07", 0, where, 1)
    last = END.pack(b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    file.write_bytes(raw[:begin] + records + wide_end + locator + last)
    if fits:
        assert load(file)["w"][999] == 999
    else:
        with pytest.raises(CorruptWeights, match="would take more than"):
            load(file)


def test_files_of_before_archives_are_read_still(root: Path) -> None:
    torch.save({"w": torch.ones(3)}, root / "old.pt", _use_new_zipfile_serialization=False)
    assert load(root / "old.pt")["w"].tolist() == [1, 1, 1]
