"""What a user's credential plugin says, as fields of a kubeconfig."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from kvestigate.client.access import AccessOptions, resolve
from kvestigate.client.auth.execplugin import ExecPlugin
from kvestigate.errors import UsageError


async def login_of(
    path: Path, context: str, environ: Mapping[str, str]
) -> tuple[str, dict[str, str], str]:
    """Run it. Gives the user's name, the fields, and whose they are and until when."""
    access = resolve(AccessOptions(kubeconfig=str(path), context=context), environ, None)
    credentials = access.credentials
    if not isinstance(credentials, ExecPlugin):
        raise UsageError(
            f'context "{access.context}" does not log in with a credential plugin: '
            f"it has {credentials.describe()}",
            hint="choose another with --context; `kvestigate kubeconfig analyze` lists them",
        )
    said = await credentials.current()
    login: dict[str, str] = {}
    if said.token:
        login["token"] = said.token
    if said.certificate and said.key:
        login["client-certificate-data"] = base64.b64encode(said.certificate).decode()
        login["client-key-data"] = base64.b64encode(said.key).decode()
    return access.user, login, credentials.describe()
