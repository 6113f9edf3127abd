"""Whatever a folder or client is called: one export, of that folder, to those clients."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfs_setup.errors import RequestRefused
from nfs_setup.exports import (
    Client,
    Export,
    Options,
    client,
    file_of,
    flavours,
    read_exports,
    text_of,
)
from nfs_setup.paths import checked_path, escaped

#: Names that file systems allow, the nastier ones more often.
NAMES = st.text(
    st.one_of(st.sampled_from(" \t\n\\\"'#()*?,=-.%$`;&|\x00\x7f01234567"), st.characters()),
    min_size=1,
    max_size=20,
)


def words_of(content: bytes) -> list[list[bytes]]:
    """An independent and simple reader of what we write: lines, blanks, octal escapes."""
    found = []
    for line in content.split(b"\n"):
        if not line or line.startswith(b"#"):
            continue
        words = []
        for word in line.split(b" "):
            parts = word.split(b"\\")
            words.append(parts[0] + b"".join(bytes([int(p[:3], 8)]) + p[3:] for p in parts[1:]))
        found.append(words)
    return found


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_a_folder_of_any_name_is_one_export_of_itself_or_refused(names: list[str]) -> None:
    path = "/" + "/".join(names)
    try:
        plain = checked_path(path, "folder")
        encoded = os.fsencode(plain)
    except (RequestRefused, UnicodeEncodeError):
        return
    text = text_of(plain, [Client("trainer1"), Client("10.0.0.0/24")], Options())
    content = text.encode("utf-8", "surrogateescape")
    assert read_exports(content) == [
        Export(plain, "trainer1", Options().text(), 2),
        Export(plain, "10.0.0.0/24", Options().text(), 2),
    ]
    assert [words[0] for words in words_of(content)] == [encoded]
    assert file_of(plain).startswith("/etc/exports.d/bequeath-")
    assert "/" not in file_of(plain)[len("/etc/exports.d/") :]


@given(NAMES)
def test_a_client_of_any_name_is_one_word_or_refused(text: str) -> None:
    try:
        found = client(text)
    except RequestRefused:
        return
    content = text_of("/srv/w", [found], Options()).encode()
    assert [(e.path, e.client) for e in read_exports(content)] == [("/srv/w", found.word)]


@pytest.mark.parametrize(
    "path",
    ["", "srv", "/", "//", "/srv/../etc", "/srv/./w", "/srv//w", "//srv/w", "/a\nb", "/a\tb",
     "/a\\b", '/a"b', "/a\x7fb", "/" + "x" * 2000],
)  # fmt: skip
def test_paths_that_no_file_can_hold_or_nobody_means_are_refused(path: str) -> None:
    with pytest.raises(RequestRefused):
        checked_path(path, "folder")


def test_a_blank_and_a_mark_are_escaped_as_the_manual_says() -> None:
    assert escaped("/srv/my weights#1") == r"/srv/my\040weights\0431"
    assert checked_path("/srv/w/", "folder") == "/srv/w"


@pytest.mark.parametrize(
    "text, word",
    [
        ("trainer1", "trainer1"),
        ("trainer1.example.org", "trainer1.example.org"),
        ("10.0.0.7", "10.0.0.7"),
        ("10.0.0.7/32", "10.0.0.7"),
        ("10.0.0.0/24", "10.0.0.0/24"),
        ("10.0.0.0/255.255.255.0", "10.0.0.0/24"),
        ("fd00::/64", "fd00::/64"),
        ("@trainers", "@trainers"),
    ],
)
def test_clients(text: str, word: str) -> None:
    assert client(text).word == word


@pytest.mark.parametrize(
    "text",
    ["", "a b", "a\nb", "a(rw)", "-rw", "a,b", "10.0.0.1/24", "10.0.0.0/33", "10.0.0.999", "#a",
     "a/b", "fe80::1%eth0", "@", "@a b", "a#b", "\\052", "1.2.3.4/0.0.0.255x"],
)  # fmt: skip
def test_what_is_no_client_is_refused(text: str) -> None:
    with pytest.raises(RequestRefused):
        client(text, wildcards=True, everybody=True)


def test_a_network_with_bits_of_a_host_is_named_as_it_should_be() -> None:
    with pytest.raises(RequestRefused) as caught:
        client("10.0.0.1/24")
    assert caught.value.hint == "write 10.0.0.0/24"


@pytest.mark.parametrize("text", ["*", "0.0.0.0/0", "::/0", "0.0.0.0/0.0.0.0", "0::/0"])
def test_everybody_has_to_be_asked_for(text: str) -> None:
    with pytest.raises(RequestRefused, match="everybody"):
        client(text, wildcards=True)
    assert "everybody" in client(text, everybody=True).warning


@pytest.mark.parametrize("text", ["*.example.org", "trainer?", "a*b"])
def test_patterns_have_to_be_asked_for(text: str) -> None:
    with pytest.raises(RequestRefused, match="pattern"):
        client(text, everybody=True)
    assert client(text, wildcards=True).word == text


def test_patterns_that_are_everybody_in_disguise_are_no_patterns() -> None:
    for text in ("**", "*?", "*.*", "?"):
        with pytest.raises(RequestRefused):
            client(text, wildcards=True)


def test_a_public_address_is_warned_of() -> None:
    assert "open internet" in client("8.8.8.0/24").warning
    assert not client("192.168.1.0/24").warning


def test_options_are_safe_and_said_out_loud() -> None:
    assert Options().text() == "rw,sync,root_squash,no_subtree_check,sec=sys"
    loose = Options(read_only=True, root_squash=False, sync=False, sec=("krb5p", "sys"))
    assert loose.text() == "ro,async,no_root_squash,no_subtree_check,sec=krb5p:sys"


def test_flavours() -> None:
    assert flavours("krb5p:krb5i") == ("krb5p", "krb5i")
    for text in ("", "sys,rw", "none", "krb5p:", "sys)"):
        with pytest.raises(RequestRefused):
            flavours(text)


def test_the_reader_reads_what_others_write() -> None:
    content = (
        b'# /not this *\n"/a b" one(rw) two\n/c\\\n  three(ro,\\\nsync)\n/d\\040e *(rw)\n/f\n'
        b"/g -rw h i(ro) # tail *(rw)"
    )
    assert [(e.path, e.client, e.options, e.line) for e in read_exports(content)] == [
        ("/a b", "one", "rw", 2),
        ("/a b", "two", "", 2),
        ("/c", "three", "ro,sync", 3),
        ("/d e", "*", "rw", 6),
        ("/f", "*", "", 7),
        ("/g", "h", "", 8),
        ("/g", "i", "ro", 8),
    ]
