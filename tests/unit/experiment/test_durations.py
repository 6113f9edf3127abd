import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.experiment.quantities import format_duration, parse_duration


@pytest.mark.parametrize(
    "text,seconds",
    [
        (90, 90.0),
        (0.5, 0.5),
        ("90", 90.0),
        ("10m", 600.0),
        ("0.5h", 1800.0),
        ("1h30m", 5400.0),
        (" 2 D ", 172800.0),
        ("1w", 604800.0),
        ("250ms", 0.25),
        (".5s", 0.5),
        ("1e3s", 1000.0),
        (0, 0.0),
    ],
)
def test_reads_what_people_write(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "value,said",
    [
        ("10 parsecs", "has the unknown unit 'parsecs' in '10 parsecs'; units are ms, s, m, h, d"),
        ("-5m", "must not be negative, as '-5m' is"),
        (-5, "must not be negative, as -5 is"),
        ("", "must be a duration, not ''"),
        ("soon", "must be a duration, not 'soon': write it as '90s', '10m'"),
        ("1:30", "must be a duration, not '1:30'"),
        ("10 20", "must be a duration, not '10 20'"),
        (True, "must be a duration, not True"),
        (None, "must be a duration, not None"),
        (float("inf"), "must be a finite duration"),
        (float("nan"), "must be a finite duration"),
        ("1e999s", "must be a finite duration"),
    ],
)
def test_refuses_with_the_way_to_write_it(value: object, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_duration(value)
    assert str(refused.value).startswith(said)


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_formatted_durations_read_back_exactly(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.integers(min_value=0, max_value=10**9))
def test_whole_seconds_read_back_exactly(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError:
        return  # any other exception fails the test
    assert 0 <= seconds < float("inf")
