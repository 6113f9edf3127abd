"""A snapshot of the code holds what belongs to it, and later edits do not reach it."""

from pathlib import Path

from dispatcher.experiment.code_folder import copy_code


def test_a_copy_has_the_code_and_nothing_else(tmp_path: Path) -> None:
    code = tmp_path / "code"
    (code / "nets").mkdir(parents=True)
    (code / "nets" / "cell.py").write_text("width = 8\n")
    (code / "link.py").symlink_to("nets/cell.py")
    (code / "__pycache__").mkdir()
    (code / "__pycache__" / "cell.pyc").write_bytes(b"x")
    (code / "data").mkdir()
    (code / ".bequeathignore").write_text("data/\n")
    copy_code(code, tmp_path / "copy")
    (code / "nets" / "cell.py").write_text("width = 16\n")
    assert (tmp_path / "copy" / "nets" / "cell.py").read_text() == "width = 8\n"
    assert (tmp_path / "copy" / "link.py").is_symlink()
    assert not (tmp_path / "copy" / "__pycache__").exists()
    assert not (tmp_path / "copy" / "data").exists()
