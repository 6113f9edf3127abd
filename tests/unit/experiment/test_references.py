import os
from pathlib import Path

import pytest

from dispatcher.errors import ExperimentFileError
from dispatcher.experiment.references import (
    files_referred_to,
    resolve_environment,
    resolve_reference,
    secret_values,
)
from dispatcher.experiment.shown import shown


def test_each_kind_of_value(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    variables = {
        "PLAIN": "x",
        "FROM_ENV": "env:TOKEN",
        "FROM_FILE": f"file:{secret}",
        "AS_IT_IS": "literal:file:/data/runs",
    }
    assert resolve_environment(variables, {"TOKEN": "abc"}) == {
        "PLAIN": "x",
        "FROM_ENV": "abc",
        "FROM_FILE": "s3cret",
        "AS_IT_IS": "file:/data/runs",
    }


def test_references_that_lead_nowhere(tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(b"x" * (65 << 10))
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff")
    for text, said in {
        "env:NOPE": "refers to the variable 'NOPE', which is not set here",
        f"file:{tmp_path}/nope": f"refers to {tmp_path}/nope, which cannot be read",
        f"file:{big}": f"refers to {big}, which holds no text of 64 KiB",
        f"file:{binary}": f"refers to {binary}, which is not UTF-8 text",
    }.items():
        with pytest.raises(ValueError) as refused:
            resolve_reference(text, {})
        assert str(refused.value).startswith(said)


def test_the_error_names_the_variable_and_the_way_out() -> None:
    with pytest.raises(ExperimentFileError) as refused:
        resolve_environment({"T": "env:NOPE"}, {})
    assert refused.value.where == "trialEnvironment.T"
    assert refused.value.hint == "write 'literal:env:NOPE' if the text itself is meant"


def test_what_is_masked_and_what_may_be_shown(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from a file\n")
    variables = {
        "A": "env:SET",
        "B": "env:MISSING",
        "C": f"file:{tmp_path}/key",
        "D": "literal:env:x",
        "WANDB_API_KEY": "written out",
        "DB_PASSWORD": "env:MISSING",
        "KEYBOARD": "de",
    }
    assert secret_values(variables, {"SET": "from a variable"}) == [
        "from a variable",
        "from a file",
    ]
    assert shown(variables) == variables | {"WANDB_API_KEY": "[masked]"}


def test_a_value_for_trials_that_looks_like_a_reference_names_no_secret(tmp_path: Path) -> None:
    # It is never looked up; the file is data, and machines need it.
    settings = {
        "trial_environment": {"TOKEN": f"file:{tmp_path / 'token'}"},
        "search_space": {"data": {"_type": "choice", "_value": ["file:data.csv"]}},
        "tuner": {"class_args": {"start": "file:start.json"}},
    }
    assert files_referred_to(settings) == [tmp_path / "token"]


def test_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Mutation: 'validate' waits for ever for somebody who writes."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="which is a pipe"):
        resolve_reference(f"file:{tmp_path}/pipe")


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.json", '{\n\t"t":\t"s3cret"}'),
        ("a.json", '{"t": "s3cret",}'),
        ("a.yml", "t: old\nt: s3cret\n"),
        ("a.json", '\ufeff{"t": "s3cret"}'),
    ],
    ids=["tabs", "comma", "twice", "mark"],
)
def test_one_value_is_found_in_each_file_that_is_read(
    tmp_path: Path, name: str, content: str
) -> None:
    """Files of other frameworks are read so. Mutation: they are read, and their secrets are not."""
    (tmp_path / name).write_text(content)
    assert resolve_reference(f"file:{tmp_path / name}#t", {}) == "s3cret"


def test_a_byte_order_mark_is_no_part_of_a_secret(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"\xef\xbb\xbfs3cret\r\n")
    assert resolve_reference(f"file:{tmp_path / 'token'}", {}) == "s3cret"
