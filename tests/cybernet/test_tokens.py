"""Tokens expire, and come and go with the file while a gateway runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.client.access import Access
from kvestigate.cybernet.loading import load_cyberspace, read_text
from kvestigate.cybernet.refusals import Unauthenticated
from kvestigate.cybernet.spec import TokenSpec, read_cyberspace
from kvestigate.cybernet.token_file import with_tokens
from kvestigate.cybernet.tokens import digest, identify
from kvestigate.errors import InputError
from tests.cybernet.conftest import OPERATIONS, RESEARCH, Document, changed, fronted_by

SOON = 1_900_000_000.0


@pytest.mark.parametrize(
    ("expires", "now", "valid"),
    [(None, 9e9, True), (SOON, SOON - 1, True), (SOON, SOON, False), (SOON, SOON + 1, False)],
)
def test_a_token_counts_until_it_expires(expires: float | None, now: float, valid: bool) -> None:
    known = [TokenSpec("ada", digest("t"), (), expires)]
    if valid:
        assert identify(known, "t", now) == "ada"
    else:
        with pytest.raises(Unauthenticated, match="has expired at 2030-03-17T17:46:40Z"):
            identify(known, "t", now)


def test_the_file_says_when() -> None:
    document = changed("auth.tokens.0.expires", "2030-03-17T17:46:40Z")
    assert read_cyberspace(document).tokens[0].expires == SOON
    unquoted = yaml.safe_dump(document).replace("'2030-03-17T17:46:40Z'", "2030-03-17T17:46:40Z")
    assert read_text(unquoted, "x").tokens[0].expires == SOON
    for wrong in ("tomorrow", "2030-03-17T17:46:40", 7, "2030-03-17"):
        with pytest.raises(InputError, match=r"auth\.tokens\[0\]\.expires"):
            read_cyberspace(changed("auth.tokens.0.expires", wrong))


async def test_a_gateway_heeds_a_change_of_its_file(
    document: Document, access: Access, tmp_path: Path
) -> None:
    config = tmp_path / "space.yaml"
    config.write_text(yaml.safe_dump(document))
    async with fronted_by(load_cyberspace(config, OPERATIONS), access) as front:

        async def status(token: str) -> int:
            return (await front.call("report.list", token=token)).status_code

        def write(text: str) -> None:
            """As replaced by an editor: another file of the same name."""
            other = tmp_path / "other"
            other.write_text(text)
            other.replace(config)

        assert (await status("token-of-ada"), await status("fresh")) == (200, 401)
        _, bob = read_cyberspace(document).tokens
        write(with_tokens(config.read_text(), [bob, TokenSpec("ada", digest("fresh"))]))
        assert (await status("token-of-ada"), await status("fresh")) == (401, 200)
        write("apiVersion: [")
        unreadable = await front.call("report.list", token="fresh")
        assert (unreadable.status_code, unreadable.headers["retry-after"]) == (503, "1")
        config.unlink()
        assert await status("fresh") == 503
        write(yaml.safe_dump(document))
        assert (await status("token-of-ada"), await status("fresh")) == (200, 401)


BLOCK = """\
# ours
apiVersion: kvestigate.cybernet/v1
kind: Cyberspace
metadata: {name: pool}   # the pool
auth:
  # who may call
  tokens:
    - identity: ada
      sha256: "DIGEST"   # of ada
      tags:
        - gpu

# what they may
operations:
  allow: [pods]
audit: {path: /tmp/audit.jsonl}
""".replace("DIGEST", digest("a"))
FLOW = BLOCK.partition("auth:")[0] + (
    f"auth: {{tokens: [{{identity: ada, sha256: '{digest('a')}'}}]}}\naudit: {{path: /tmp/a}}\n"
)
EMPTY = BLOCK.partition("auth:")[0] + "auth:\n  tokens: []\naudit: {path: /tmp/a}\n"
NONE = BLOCK.partition("auth:")[0] + "audit: {path: /tmp/a}"
LAST = BLOCK.partition("auth:")[0] + "audit: {path: /tmp/a}\nauth:\n    tokens: []"

tokens = st.lists(
    st.builds(
        TokenSpec,
        st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._@-]{0,8}[A-Za-z0-9])?", fullmatch=True),
        st.binary(min_size=4).map(lambda raw: digest(raw.hex())),
        st.lists(st.text("ab'\": #", min_size=1, max_size=5), max_size=2).map(tuple),
        st.none() | st.integers(0, 4_000_000_000).map(float),
    ),
    max_size=4,
    unique_by=lambda token: token.sha256,
)


@given(st.sampled_from([BLOCK, FLOW, EMPTY, NONE, LAST]), tokens, tokens)
def test_only_the_tokens_of_a_file_change(
    text: str, first: list[TokenSpec], second: list[TokenSpec]
) -> None:
    before = read_text(text, "x")
    for wanted in (first, second):
        text = with_tokens(text, wanted)
        space = read_text(text, "x")
        assert space.tokens == tuple(wanted)
        assert (space.metadata, space.allow, space.audit) == (
            before.metadata,
            before.allow,
            before.audit,
        )
        assert text.startswith("# ours\n")


def test_comments_elsewhere_stay() -> None:
    text = with_tokens(BLOCK, [])
    for comment in ("# ours", "# the pool", "# who may call", "# what they may"):
        assert comment in text


def test_all_of_research_has_its_tokens() -> None:
    text = yaml.safe_dump(RESEARCH)
    kept = read_cyberspace(RESEARCH).tokens
    assert read_text(with_tokens(text, kept), "x").tokens == kept
