"""Faults of who comes in over the page, and of what the page is kept from."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_GUARD = "dispatcher/web/guard.py"
_KEYS = "dispatcher/web/keys.py"
_ENTRANCE = ("tests/integration/web/test_entrance.py",)
_RULES = (f"{_ENTRANCE[0]}::test_each_rule_alone_keeps_somebody_out",)
_BOUNDS = ("tests/integration/web/test_bounds.py",)

ENTERING = (
    Mutation(
        "any-host-is-ours",
        9,
        "a name that somebody points at this machine reads the page",
        _GUARD,
        "    if name not in settings.names:",
        "    if not name:",
        _RULES,
    ),
    Mutation(
        "pages-of-other-sites-may-ask",
        9,
        "a page of another site reads and changes experiments by the owner's browser",
        _GUARD,
        '    if site not in (None, "same-origin", "none") and not follows_link:',
        "    if site is None and follows_link:",
        _RULES,
    ),
    Mutation(
        "any-origin-is-ours",
        9,
        "an old browser lets another site change experiments",
        _GUARD,
        "    if origins and not (len(origins) == 1 and _is_own(origins[0], hosts[0], settings)):",
        "    if len(origins) > 1:",
        _RULES,
    ),
    Mutation(
        "an-origins-port-does-not-matter",
        9,
        "another program's page on this machine changes experiments",
        _GUARD,
        "    asked = (parts.hostname, str(port or usual))",
        "    asked = (parts.hostname, split_authority(host)[1] or usual)",
        _RULES,
    ),
    Mutation(
        "links-of-others-lead-to-the-interface",
        9,
        "another site's link asks the interface in the owner's name",
        _GUARD,
        "        page\n        and method in SAFE",
        "        method in SAFE",
        _RULES,
    ),
    Mutation(
        "a-cookie-changes-without-the-header",
        9,
        "a form of another site changes experiments where a browser says nothing of itself",
        _GUARD,
        '        if identity.by_cookie and method not in SAFE and headers.get(OWN_HEADER) != "1":',
        "        if identity.by_cookie and method in ():",
        _RULES,
    ),
    Mutation(
        "readers-may-change",
        9,
        "whoever was given a link to read ends the search",
        "dispatcher/web/route.py",
        "    if scope not in identity.scopes:",
        "    if not identity.scopes:",
        _RULES,
    ),
    Mutation(
        "a-link-counts-for-ever",
        9,
        "whoever finds a link in a history is signed in",
        _KEYS,
        'self._links.pop(digest_of(code), (0.0, ""))',
        'self._links.get(digest_of(code), (0.0, ""))',
        ("tests/unit/web/test_keys.py",),
    ),
    Mutation(
        "a-cookie-outlives-its-share",
        9,
        "whoever was shut out reads on",
        _KEYS,
        '        text = f"cookie:{digest}:{payload}".encode()',
        '        text = f"cookie:{payload}".encode()',
        ("tests/unit/web/test_keys.py",),
    ),
    Mutation(
        "who-asks-nothing-stays",
        8,
        "a thousand connections that ask nothing shut everybody out",
        "dispatcher/web/connection.py",
        "        self._asks_until = self.loop.call_later(HEADERS_S, self.transport.abort)\n",
        "",
        (f"{_BOUNDS[0]}::test_a_thousand_connections_harm_nobody_for_long",),
    ),
    Mutation(
        "streams-are-not-given-back",
        8,
        "after a hundred visits nobody gets a stream",
        "dispatcher/web/live.py",
        "            self.streams -= stream",
        "            pass",
        (f"{_BOUNDS[0]}::test_streams_are_counted",),
    ),
)
