"""Credentials that do not work, or soon will not. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from kvestigate.kubeconfigs.entries import Entry
from kvestigate.kubeconfigs.expiry import Validity, key_fits, of_cluster, of_user
from kvestigate.kubeconfigs.look import Look
from kvestigate.kubeconfigs.model import Finding, kubectl
from kvestigate.render.severity import Severity

SOON = timedelta(days=30)


def expiring(look: Look, now: datetime) -> Iterator[Finding]:
    for cluster in look.entries.clusters:
        if cluster.value is not None:
            for validity in of_cluster(cluster.value, look):
                yield from _ending(cluster, validity, now)
    for user in look.entries.users:
        if user.value is not None:
            for validity in of_user(user.value, look):
                yield from _ending(user, validity, now)


def _ending(entry: Entry[Any], validity: Validity, now: datetime) -> Iterator[Finding]:
    left = validity.ends - now
    if left > SOON:
        return
    expired = left <= timedelta()
    # A token that lives for an hour always ends soon: that is how it is meant.
    if not expired and "token" in validity.field.lower():
        return
    date = f"{validity.ends:%Y-%m-%d %H:%M} UTC"
    yield Finding(
        "expired" if expired else "expires-soon",
        Severity.CRITICAL if expired else Severity.WARNING,
        entry.label,
        entry.section.where(validity.field),
        f"{validity.what} {'expired' if expired else 'expires'} {date}",
        "the server refuses these credentials"
        if expired
        else f"{left.days} days are left to renew the credentials",
        "kvestigate kubeconfig verify",
    )


def mismatched(look: Look, now: datetime) -> Iterator[Finding]:
    for entry in look.entries.users:
        if entry.value is not None and key_fits(entry.value, look) is False:
            field = "client-key-data" if entry.value.client_key_data else "client-key"
            yield Finding(
                "wrong-key",
                Severity.CRITICAL,
                entry.label,
                entry.section.where(field),
                "the client key is not that of the client certificate",
                "connections with this pair fail",
            )


def plugins(look: Look, now: datetime) -> Iterator[Finding]:
    for entry in look.entries.users:
        plugin = entry.value.exec if entry.value is not None else None
        if plugin is not None and plugin.command in look.missing_plugins:
            hint = plugin.install_hint.strip().splitlines()
            yield Finding(
                "missing-plugin",
                Severity.CRITICAL,
                entry.label,
                entry.section.where("exec", "command"),
                f"the credential plugin {plugin.command} is not found",
                hint[0] if hint else "this user cannot log in without the plugin",
                shlex.join(("command", "-v", plugin.command)),
            )


def providers(look: Look, now: datetime) -> Iterator[Finding]:
    for entry in look.entries.users:
        provider = entry.value.auth_provider if entry.value is not None else None
        if provider is not None and provider.name != "oidc":
            yield Finding(
                "removed-provider",
                Severity.CRITICAL,
                entry.label,
                entry.section.where("auth-provider", "name"),
                f'auth-provider "{provider.name}" is no longer supported by Kubernetes',
                "this user cannot log in; use a credential plugin instead",
            )


def passwords(look: Look, now: datetime) -> Iterator[Finding]:
    for entry in look.entries.users:
        if entry.value is not None and entry.value.password:
            yield Finding(
                "password",
                Severity.WARNING,
                entry.label,
                entry.section.where("password"),
                "the user logs in with a password",
                "Kubernetes has not accepted passwords since 1.19",
                kubectl(entry.file, "delete-user", entry.name),
            )
