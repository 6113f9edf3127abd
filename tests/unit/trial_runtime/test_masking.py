from __future__ import annotations

import logging

import pytest

from trial_runtime.masking import MASKED, Mask, MaskFilter


def test_each_form_of_a_secret_is_masked() -> None:
    mask = Mask(['pa"ss\\word', "line one\nline two\n"])
    for text in ('it is pa"ss\\word', '{"x": "pa\\"ss\\\\word"}', repr({"x": 'pa"ss\\word'})):
        assert "word" not in mask(text)
        assert MASKED in mask(text)
    assert mask("only line two, of it") == f"only {MASKED}, of it"


def test_the_longer_of_two_goes_first_and_short_ones_are_none() -> None:
    mask = Mask(["abcd", "abcdefgh", "1", ""])
    assert mask("abcdefgh 1") == f"{MASKED} 1"
    mask.learn(["later"])
    assert mask("later") == MASKED


def test_a_log_is_masked_with_its_arguments_and_tracebacks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = logging.getLogger("bequeath.test.masking")
    log.addFilter(MaskFilter(Mask(["hunter2"])))
    try:
        raise ValueError("no hunter2")
    except ValueError:
        log.exception("it is %s", "hunter2")
    assert "hunter2" not in caplog.text
    assert caplog.text.count(MASKED) >= 2
