"""Who gets in, and what a hostile page in the same browser can do: nothing."""

from __future__ import annotations

import pytest

from kvestigate.console.gate import MOST_BODY
from kvestigate.errors import UsageError
from tests.console.conftest import HOST, Console, Consoles, Visitor, hidden

ORIGIN = f"http://{HOST}"
PAGES = ("/", "/explore", "/explore/pods", "/plan", "/operations", "/static/console.js", "/nope")


@pytest.mark.parametrize("path", PAGES)
async def test_strangers_see_nothing(console: Console, path: str) -> None:
    async with console.browser() as browser:
        answer = await browser.get(path)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


async def test_a_token_is_worth_one_browser(console: Console) -> None:
    token = console.sessions.token
    async with console.browser() as first, console.browser() as second:
        assert (await first.get("/sign-in", params={"token": token})).status_code == 200
        assert (await second.get("/sign-in", params={"token": token})).status_code == 403
        assert (await first.get("/operations")).status_code == 200
        assert (await second.get("/operations")).status_code == 401
    assert console.announced == [console.sessions.token]
    assert console.sessions.token != token


@pytest.mark.parametrize("guess", ["", "x", "x" * 43, "\u00e9" * 43, "x" * 60_000])
async def test_a_wrong_token_opens_nothing_and_spends_nothing(console: Console, guess: str) -> None:
    async with console.browser() as browser:
        answer = await browser.get("/sign-in", params={"token": guess})
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
        await browser.head("/sign-in", params={"token": console.sessions.token})
    await console.signed_in()


async def test_the_cookie_is_for_this_console_alone(console: Console) -> None:
    async with console.browser() as browser:
        answer = await browser.get("/sign-in", params={"token": console.sessions.token})
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("kvestigate-console-8080=")
    for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert part in cookie
    assert "Domain" not in cookie


@pytest.mark.parametrize(
    "cookie", ["x", "", "a=b", "kvestigate-console-8080=", '"', "\x00", "=;=;"]
)
async def test_other_cookies_are_no_session(console: Console, cookie: str) -> None:
    await console.signed_in()
    async with console.browser(cookie=cookie) as browser:
        assert (await browser.get("/operations")).status_code == 401


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8080", "127.0.0.1.evil.example:8080", "127.0.0.1:8081",
        "localhost", "localhost:80", "[::1]", "127.0.0.1:8080@evil.example", "", "127.0.0.1:8080:1",
    ],
)  # fmt: skip
async def test_a_page_under_a_foreign_name_is_refused(visitor: Visitor, host: str) -> None:
    """DNS rebinding: evil.example resolves to 127.0.0.1, and the browser says evil.example."""
    answer = await visitor.http.get("/operations", headers={"host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1:8080", "[::1]:8080"])
async def test_the_names_of_this_machine_are_known(visitor: Visitor, host: str) -> None:
    answer = await visitor.http.get("/operations", headers={"host": host})
    assert answer.status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("mode", "dest"),
    [("no-cors", "image"), ("no-cors", "script"), ("cors", "empty"), ("websocket", "empty"),
     ("navigate", "iframe"), ("navigate", "embed"), ("navigate", "object"), ("navigate", "frame")],
)  # fmt: skip
async def test_other_sites_may_neither_load_nor_frame_us(
    visitor: Visitor, site: str, mode: str, dest: str
) -> None:
    """`same-site` is another port of this machine: a port-forward to a hostile pod, say."""
    fetch = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}
    answer = await visitor.http.get("/explore/pods", headers=fetch)
    assert answer.status_code == 403


async def test_a_link_of_another_site_leads_in_without_its_cookie(console: Console) -> None:
    """The browser leaves a strict cookie out; our own page then asks again, with it."""
    fetch = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate",
             "sec-fetch-dest": "document"}  # fmt: skip
    async with console.browser() as browser:
        answer = await browser.get("/explore/pods?q=a%22b&context=test", headers=fetch)
        assert answer.status_code == 200
        assert 'url=/explore/pods?q=a%22b&amp;context=test"' in answer.text
        assert (await browser.get("/explore/pods")).status_code == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "", "http://127.0.0.1:8081", "http://localhost:8080"]
)
async def test_forms_of_other_origins_are_refused(
    consoles: Consoles, method: str, origin: str
) -> None:
    visitor = await consoles.make(allow_writes=True).signed_in()
    token = hidden(await visitor.get("/act/node.cordon"), "form-token")
    answer = await visitor.http.request(
        method, "/act/node.cordon", data={"form-token": token, "node": "x"},
        headers={"origin": origin} if origin else {},
    )  # fmt: skip
    assert answer.status_code == 403
    assert "Another site" in answer.text


@pytest.mark.parametrize("token", ["", "0" * 64, "x"])
async def test_a_form_without_its_token_is_refused(consoles: Consoles, token: str) -> None:
    visitor = await consoles.make(allow_writes=True).signed_in()
    fields = {"form-token": token, "node": "x"}
    answer = await visitor.http.post("/act/node.cordon", data=fields, headers={"origin": ORIGIN})
    assert answer.status_code == 403


async def test_the_form_token_of_another_session_is_refused(consoles: Consoles) -> None:
    console = consoles.make(allow_writes=True)
    ada, eve = await console.signed_in(), await console.signed_in()
    token = hidden(await eve.get("/act/node.cordon"), "form-token")
    answer = await ada.http.post(
        "/act/node.cordon", data={"form-token": token, "node": "x"}, headers={"origin": ORIGIN}
    )
    assert answer.status_code == 403


async def test_a_form_without_end_is_refused(visitor: Visitor) -> None:
    answer = await visitor.http.post(
        "/act/node.cordon", content=b"x" * (MOST_BODY + 1), headers={"origin": ORIGIN}
    )
    assert answer.status_code == 413


@pytest.mark.parametrize("path", [*PAGES, "/sign-in?token=x"])
async def test_every_answer_lets_nothing_run_that_is_not_ours(console: Console, path: str) -> None:
    visitor = await console.signed_in()
    for browser in (visitor.http, console.browser()):
        headers = (await browser.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py",
     "/static/console.js/", "/static//etc/passwd", "/static/third_party/htmx.min.js",
     "/object/pods/default/..%2f..%2fsecrets", "/object/pods/../secrets/x", "/explore/..%2fpods"],
)  # fmt: skip
async def test_no_path_leads_elsewhere(visitor: Visitor, path: str) -> None:
    answer = await visitor.http.get(path)
    assert answer.status_code in (400, 404)


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.com:80"])
def test_it_listens_to_this_machine_only(listen: str) -> None:
    from kvestigate.console.serving import bound

    with pytest.raises(UsageError, match="reachable from other machines"):
        bound(listen)


@pytest.mark.parametrize(
    "listen", ["", "8080", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "::1:80"]
)
def test_what_is_no_address_is_said(listen: str) -> None:
    from kvestigate.console.serving import bound

    with pytest.raises(UsageError, match="HOST:PORT"):
        bound(listen)


@pytest.mark.parametrize(
    "planted",
    ['a={"x":1}', 'a="b', "a[b]=1", "x y", "a=b c", "path=/", "a=1, b", "a@b", "=", "",
     "kvestigate-console-8080=evil", "kvestigate-console-8080=" + "x" * 2000],
)  # fmt: skip
async def test_cookies_of_other_ports_do_not_hide_ours(console: Console, planted: str) -> None:
    """Every server of this machine can set cookies for us, of any form and of our name."""
    visitor = await console.signed_in()
    [(name, value)] = visitor.http.cookies.items()
    for cookie in (f"{planted}; {name}={value}", f"{name}={value}; {planted}"):
        async with console.browser(cookie=cookie) as browser:
            assert (await browser.get("/operations")).status_code == 200


@pytest.mark.parametrize("name", [".", ".."])
@pytest.mark.parametrize(
    "path",
    ["/object/pods/{}/x", "/object/pods/{}/x/yaml", "/object/pods/{}/x/logs",
     "/object/pods/default/{}", "/object/pods/default/{}/why",
     "/run/describe?run=1&kind=pods&name=x&namespace={}",
     "/run/describe?run=1&kind=pods&name={}"],
)  # fmt: skip
async def test_no_name_leads_to_another_path_of_the_cluster(
    visitor: Visitor, path: str, name: str
) -> None:
    """Proxies before an API server resolve dots, so none may be sent."""
    encoded = name.replace(".", "%2e")
    answer = await visitor.http.get(path.format(encoded))
    assert answer.status_code in (200, 400)  # an operation that was refused has its page
    assert "is not a valid name" in answer.text


async def test_what_is_no_page_says_that_it_is_text(visitor: Visitor) -> None:
    """A browser must not guess: messages of an API server are in these answers."""
    for path in ("/events/explore/%3Cscript%3E", "/static/nope"):
        answer = await visitor.http.get(path)
        assert answer.status_code in (400, 404)
        assert answer.headers["content-type"].startswith("text/plain")
