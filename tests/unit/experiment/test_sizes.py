import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.experiment.quantities import format_size, parse_size


@pytest.mark.parametrize(
    "text,size",
    [
        (4096, 4096),
        ("4096", 4096),
        ("64mb", 64 << 20),
        ("64 MB", 64 << 20),
        ("1.5gb", 3 << 29),
        ("2k", 2048),
        ("3GiB", 3 << 30),
        ("1Gi", 1 << 30),
        ("1tb", 1 << 40),
        ("7b", 7),
    ],
)
def test_reads_what_people_write(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "value,said",
    [
        ("3q", "has the unknown unit 'q' in '3q'; units are b, kb, mb, gb, tb"),
        (-1, "must not be negative, as -1 is"),
        ("-1mb", "must be a size, not '-1mb': write it as '64mb'"),
        ("much", "must be a size, not 'much'"),
        (1.5, "must be a size, not 1.5"),
        (False, "must be a size, not False"),
        ("9999999999tb", "is larger than any disk: '9999999999tb'"),
    ],
)
def test_refuses_with_the_way_to_write_it(value: object, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_size(value)
    assert str(refused.value).startswith(said)


@given(st.integers(min_value=0, max_value=1 << 60))
def test_formatted_sizes_read_back_exactly(size: int) -> None:
    assert parse_size(format_size(size)) == size
