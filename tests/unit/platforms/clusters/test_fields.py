"""What errors about values of sections repeat of them."""

from __future__ import annotations

import re
from typing import Annotated

import pytest
from pydantic import TypeAdapter, ValidationError

from dispatcher.platforms.clusters.fields import ServiceUrl, shaped

SHAPED = Annotated[str, shaped(r"oss://[^@]+", "an address without a login")]


@pytest.mark.parametrize("kind, text", [
    (ServiceUrl, "https://me:hunter2@host/x"),
    (ServiceUrl, "me:hunter2@host"),
    (ServiceUrl, "https://host/?sig=hunter2"),
    (ServiceUrl, "https://host/x#hunter2"),
    (SHAPED, "oss://id:hunter2@bucket/x"),
    (SHAPED, "oss://id:hunt/er2@hunter2@bucket/x"),
])  # fmt: skip
def test_a_login_in_an_address_is_repeated_nowhere(kind: object, text: str) -> None:
    """Errors go into logs and tickets. Mutation: they show the address with its login."""
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(kind).validate_python(text)
    shown = refused.value.errors()[0]["msg"]
    assert "hunter2" not in shown
    assert re.search(r"\*\*\*", shown)


def test_other_texts_are_repeated() -> None:
    with pytest.raises(ValidationError, match="'s3://bucket/x'"):
        TypeAdapter(SHAPED).validate_python("s3://bucket/x")
