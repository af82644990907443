"""Who a request comes from, as a server that wants proof sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kvestigate.client.api import Api
from kvestigate.errors import Forbidden, Unauthorized, UsageError
from kvestigate.jobs.remote.launcher import Remote
from kvestigate.jobs.server.authn import Bearer, Header, new_token, token_digest
from kvestigate.jobs.server.serve import bound, serving
from kvestigate.jobs.server.settings import Settings, read_settings
from kvestigate.jobs.users import Caller, Role, User
from tests.jobs.issuer import AUDIENCE, CLAIMS, NOW, jwks, token

JANE, ROOT = new_token(), new_token()
TOKENS = read_settings(
    {
        "tokens": [
            {"user": "jane@example.com", "sha256": token_digest(JANE)},
            {"user": "root", "role": "admin", "sha256": token_digest(ROOT)},
        ]
    }
)


async def caller(settings: Settings, *headers: tuple[str, str]) -> Caller:
    return await Bearer(settings, lambda: NOW).caller(
        lambda name: [value for key, value in headers if key == name]
    )


def bearer(text: str) -> tuple[str, str]:
    return "authorization", f"Bearer {text}"


async def test_a_token_says_who_and_as_what() -> None:
    assert await caller(TOKENS, bearer(JANE)) == Caller(User("jane@example.com"), Role.USER)
    assert await caller(TOKENS, bearer(ROOT)) == Caller(User("root"), Role.ADMIN)
    agreed = await caller(TOKENS, bearer(JANE), ("x-user", "jane%40example.com"))
    assert agreed.user.name == "jane@example.com"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("x-user", "jane@example.com")],
        [bearer("")],
        [bearer(JANE[:-1])],
        [bearer(token_digest(JANE))],
        [bearer(JANE), bearer(JANE)],
        [bearer(JANE), bearer(ROOT)],
        [("authorization", JANE)],
        [("authorization", f"Basic {JANE}")],
        [bearer(JANE), ("x-user", "root")],
        [bearer(JANE), ("x-user", "jane-example.com")],
        [bearer(JANE), ("x-user", "jane@example.com"), ("x-user", "root")],
        [bearer(token())],
    ],
)
async def test_nothing_else_is_proof(headers: list[tuple[str, str]]) -> None:
    with pytest.raises(Unauthorized):
        await caller(TOKENS, *headers)


async def test_only_its_digest_is_known_of_a_token() -> None:
    assert JANE not in repr(TOKENS)
    assert len({new_token() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("admins", "name", "role"),
    [
        (None, "joe", Role.ADMIN),
        (frozenset(["ann"]), "joe", Role.USER),
        (frozenset(["ann"]), "ann", Role.ADMIN),
    ],
)
async def test_the_header_makes_admins_of_those_who_are_named(
    admins: frozenset[str] | None, name: str, role: Role
) -> None:
    found = await Header(admins).caller(lambda key: [name] if key == "x-user" else [])
    assert found.role is role


@pytest.fixture
async def issuer() -> AsyncIterator[dict[str, Any]]:
    """The settings for an issuer that publishes its keys, and how often it was asked."""
    asked: list[str] = []
    rotated: list[bool] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split()[1].decode()
        asked.append(path)
        body = jwks(without="ec" if asked.count("/keys") == 1 and rotated else "")
        if path == "/.well-known/openid-configuration":
            body = f'{{"jwks_uri": "{url}/keys"}}'.encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        oidc = {"issuer": url, "audience": AUDIENCE, "admin_groups": ["ml-admins"]}
        yield {
            "settings": read_settings({"oidc": oidc}),
            "url": url,
            "asked": asked,
            "rotated": rotated,
        }


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({}, Role.USER),
        ({"groups": ["staff", "ml-admins"]}, Role.ADMIN),
        ({"groups": "ml-admins"}, Role.ADMIN),
        ({"groups": ["ml-admin", 3]}, Role.USER),
    ],
)
async def test_a_token_of_the_issuer_is_proof(
    issuer: dict[str, Any], claims: dict[str, Any], role: Role
) -> None:
    signed = token({**CLAIMS, "iss": issuer["url"], **claims})
    found = await caller(issuer["settings"], bearer(signed))
    assert found == Caller(User("jane@example.com"), role)


@pytest.mark.parametrize(
    "claims",
    [{"email": None}, {"email": ""}, {"email": ["a"]}, {"iss": "x"}],
)
async def test_a_token_that_names_nobody_is_not(
    issuer: dict[str, Any], claims: dict[str, Any]
) -> None:
    signed = token({**CLAIMS, "iss": issuer["url"], **claims})
    with pytest.raises(Unauthorized):
        await caller(issuer["settings"], bearer(signed))


@pytest.mark.parametrize("verified", [False, None, "true", "false", 1, [True], "absent"])
async def test_an_address_that_the_issuer_has_not_verified_is_nobody(
    issuer: dict[str, Any], verified: Any
) -> None:
    claims = {**CLAIMS, "iss": issuer["url"], "sub": "jane", "email_verified": verified}
    if verified == "absent":
        del claims["email_verified"]
    signed = token(claims)
    with pytest.raises(Unauthorized, match="has not verified the address 'jane"):
        await caller(issuer["settings"], bearer(signed))
    oidc = {"issuer": issuer["url"], "audience": AUDIENCE, "username_claim": "sub"}
    assert (await caller(read_settings({"oidc": oidc}), bearer(signed))).user == User("jane")


async def test_the_issuer_is_not_asked_for_each_request(issuer: dict[str, Any]) -> None:
    times = iter([NOW] * 20 + [NOW + 11] * 20)
    authenticator = Bearer(issuer["settings"], lambda: next(times))
    good, unknown = (token({**CLAIMS, "iss": issuer["url"]}, kid=kid) for kid in ("ec", "made-up"))
    for text in (good, unknown, good, unknown, unknown):
        given = {"authorization": [f"Bearer {text}"], "x-user": []}
        try:
            await authenticator.caller(given.__getitem__)
        except Unauthorized:
            assert text == unknown
    assert issuer["asked"].count("/keys") == 1


async def test_a_key_that_the_issuer_added_later_is_fetched(issuer: dict[str, Any]) -> None:
    issuer["rotated"].append(True)  # the first time the key `ec` is not among them
    time = NOW
    authenticator = Bearer(issuer["settings"], lambda: time)
    given = {"authorization": [f"Bearer {token({**CLAIMS, 'iss': issuer['url']})}"], "x-user": []}
    with pytest.raises(Unauthorized, match="no key 'ec'"):
        await authenticator.caller(given.__getitem__)
    time += 11
    assert (await authenticator.caller(given.__getitem__)).user == User("jane@example.com")
    assert issuer["asked"].count("/keys") == 2


async def test_a_server_with_tokens_serves_who_has_one(api: Api) -> None:
    async with (
        serving(api, bound("127.0.0.1", 0), TOKENS) as url,
        Remote(url, None, JANE) as jane,
        Remote(url, None, ROOT) as root,
        Remote(url, User("jane@example.com")) as unproven,
    ):
        task_id = (await jane.submit({"run": "x"})).task_id
        assert (await jane.whoami()).role == "user"
        with pytest.raises(Unauthorized):
            await unproven.task(task_id)
        for asked in (jane.list_tasks, jane.history, jane.list_volumes, jane.stop_all):
            with pytest.raises(Forbidden, match="for administrators"):
                await asked(all_users=True)
        assert len((await root.list_tasks(all_users=True)).tasks) == 1
        assert (await root.list_tasks(all_users=False)).tasks == ()
        assert (await root.stop_all(all_users=True)).count == 1


def test_only_who_wants_proof_may_be_reached_from_elsewhere() -> None:
    with bound("0.0.0.0", 0, TOKENS) as listening:
        assert listening.getsockname()[0] == "0.0.0.0"
    with pytest.raises(UsageError, match="--host"):
        bound("0.0.0.0", 0, Settings(admins=frozenset(["joe"])))
