"""Tokens of an OpenID Connect provider, renewed with the refresh token: `auth-provider: oidc`.

A renewed token is written back to the kubeconfig before it is used, as kubectl does: many
providers accept a refresh token only once, and losing the new one would lock the user out.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from kvestigate.client.auth.identity import describe_token, jwt_claims, jwt_expiry
from kvestigate.client.auth.interface import Credential, Credentials, Fetch, Now, wall_now
from kvestigate.client.locking import locked
from kvestigate.errors import ConfigError, ConnectionFailed
from kvestigate.files import replace_file
from kvestigate.kube.documents import first_document
from kvestigate.render.encode import to_yaml

_TIMEOUT = 30.0
_LONGEST_ANSWER = 1 << 20
"""Bytes of an answer; discovery documents are a few kilobytes."""
EARLY = timedelta(seconds=10)
"""A token this near its end counts as expired: the server's clock may be ahead."""


class Oidc:
    """The id-token of one kubeconfig user."""

    def __init__(
        self,
        config: Mapping[str, str],
        *,
        user: str,
        fetch: Fetch,
        persist: Callable[[Mapping[str, str]], None],
        ca: bytes | None = None,
        now: Now = wall_now,
    ) -> None:
        self._config = dict(config)
        self._user = user
        self._fetch = fetch
        self._persist = persist
        self._ca = ca
        self._now = now
        self._lock = asyncio.Lock()
        self._credential = Credential(token=self._config.get("id-token") or None)

    async def current(self) -> Credential:
        if self._valid():
            return self._credential
        async with self._lock:
            if not self._valid():
                await self._refresh()
            return self._credential

    async def rejected(self, used: Credential) -> bool:
        async with self._lock:
            if self._credential != used:
                return True
            if not self._config.get("refresh-token"):
                return False
            await self._refresh()
            return self._credential != used

    def _valid(self) -> bool:
        token = self._credential.token
        if not token:
            return False
        claims = jwt_claims(token)
        if claims is None:
            raise self._error("its id-token is not a JWT", hint="log in again")
        expiry = jwt_expiry(claims)
        return expiry is not None and self._now() + EARLY < expiry

    async def _refresh(self) -> None:
        refresh_token = self._config.get("refresh-token")
        if not refresh_token:
            raise self._error(
                "its id-token has expired and there is no refresh-token", hint="log in again"
            )
        answer = await self._ask_for_token(await self._token_endpoint(), refresh_token)
        id_token = answer.get("id_token")
        if not isinstance(id_token, str) or not id_token:
            raise self._error(
                "the provider renewed the login without an id_token",
                hint='log in again with the scope "openid", or ask for a provider that renews it',
            )
        self._config["id-token"] = id_token
        renewed = answer.get("refresh_token")
        if isinstance(renewed, str) and renewed:
            self._config["refresh-token"] = renewed
        self._credential = Credential(token=id_token)
        self._persist(self._config)

    async def _token_endpoint(self) -> str:
        url = self._config["idp-issuer-url"].removesuffix("/") + "/.well-known/openid-configuration"
        status, body = await self._fetch("GET", url, headers={}, body=None, ca=self._ca)
        if status != 200:
            raise self._error(f"the provider answered {status} at {url}")
        endpoint = _json_object(body).get("token_endpoint")
        if not isinstance(endpoint, str) or not endpoint:
            raise self._error(f"the provider names no token_endpoint at {url}")
        return endpoint

    async def _ask_for_token(self, url: str, refresh_token: str) -> dict[str, Any]:
        """Providers look for the client's secret in the header or in the body: try both."""
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        client, secret = self._config["client-id"], self._config.get("client-secret") or ""
        status, body = 0, b""
        if secret:
            pair = f"{quote(client, safe='')}:{quote(secret, safe='')}".encode()
            basic = f"Basic {base64.b64encode(pair).decode()}"
            status, body = await self._post(url, form, {"Authorization": basic})
        if status // 100 != 2:
            form |= {"client_id": client} | ({"client_secret": secret} if secret else {})
            status, body = await self._post(url, form, {})
        answer = _json_object(body)
        if status // 100 != 2:
            # `error` is a code from a fixed list; the description could quote what we sent.
            code = answer.get("error")
            reason = f" ({code})" if isinstance(code, str) else ""
            raise self._error(
                f"the provider refused to renew the login: {status}{reason}", hint="log in again"
            )
        return answer

    async def _post(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        content = {"Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode(form).encode()
        return await self._fetch(
            "POST", url, headers={**content, **headers}, body=body, ca=self._ca
        )

    def _error(self, problem: str, hint: str | None = None) -> ConfigError:
        return ConfigError(f'OpenID Connect login of user "{self._user}": {problem}', hint=hint)

    def describe(self) -> str:
        issuer = self._config.get("idp-issuer-url", "")
        token = self._credential.token
        held = describe_token(token, self._now()) if token else "no token yet"
        return f"OpenID Connect login at {issuer}: {held}"


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


async def fetch(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None,
    ca: bytes | None,
) -> tuple[int, bytes]:
    """One request with the standard library, in a thread: it happens once in a token's life."""
    return await asyncio.to_thread(_request, method, url, dict(headers), body, ca)


def _request(
    method: str, url: str, headers: dict[str, str], body: bytes | None, ca: bytes | None
) -> tuple[int, bytes]:
    import http.client
    import ssl
    import urllib.error
    import urllib.request

    if not url.startswith(("https://", "http://")):
        raise ConnectionFailed("the identity provider's URL must start with https:// or http://")
    request = urllib.request.Request(url, data=body, headers=headers, method=method)
    try:
        # Text around the PEM blocks may be in any language; only the blocks count.
        trusted = None if ca is None else ca.decode("ascii", "ignore")
        context = ssl.create_default_context(cadata=trusted)
        with urllib.request.urlopen(request, timeout=_TIMEOUT, context=context) as response:
            return response.status, response.read(_LONGEST_ANSWER)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(_LONGEST_ANSWER)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise ConnectionFailed(f"the identity provider at {url} did not answer: {reason}") from None


def save_auth_provider(file: Path, user: str, config: Mapping[str, str]) -> None:
    """Replace the `auth-provider` configuration of `user` in `file`, read anew.

    The file is replaced in one step and keeps its permissions; a link keeps pointing to it.
    Another program's lock, or a user entry that has gone, leaves the file alone.
    """
    target = file.resolve()
    try:
        with locked(target):
            content = _with_provider(file, target.read_bytes(), user, config)
            if content is not None:
                replace_file(target, content)
    except FileExistsError:
        lock = f"{target}.lock"
        raise _unsaved(file, f"{lock} is there: another program is writing") from None
    except OSError as error:
        raise _unsaved(file, error.strerror) from None


def _unsaved(file: Path, reason: str | None) -> ConfigError:
    return ConfigError(
        f"{file}: the renewed login could not be saved: {reason}",
        hint="make the file and its directory writable, then log in again",
    )


def _with_provider(file: Path, data: bytes, user: str, config: Mapping[str, str]) -> bytes | None:
    document = first_document(data, str(file)).value
    users = document.get("users") if isinstance(document, dict) else None
    for entry in users or ():
        provider = (entry.get("user") or {}).get("auth-provider")
        if entry.get("name") == user and provider:
            provider["config"] = dict(config)
            return to_yaml(document).encode()
    return None


_fetch: Fetch = fetch
_oidc: type[Credentials] = Oidc
