"""`kubeconfig analyze`: what is in kubeconfig files and what is wrong with it, offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from kvestigate.client.kubeconfig import Cluster, User
from kvestigate.kubeconfigs.entries import Entries
from kvestigate.kubeconfigs.expiry import of_cluster, of_user
from kvestigate.kubeconfigs.look import Look, look
from kvestigate.kubeconfigs.model import Analysis, ContextFacts
from kvestigate.kubeconfigs.rules import findings


def analyze(paths: Iterable[Path], environ: Mapping[str, str], now: datetime) -> Analysis:
    """Of several files, merged as kubectl does. ConfigError if none of them is there."""
    seen = look(paths, environ)
    return Analysis(
        files=tuple(map(str, seen.files)),
        current_context=seen.entries.current_context,
        contexts=_contexts(seen),
        findings=findings(seen, now),
    )


def _contexts(seen: Look) -> tuple[ContextFacts, ...]:
    entries = seen.entries
    clusters, users = _first_clusters(entries), _first_users(entries)
    facts: dict[str, ContextFacts] = {}
    for context in entries.contexts:
        if context.value is None or context.name in facts:
            continue
        cluster = clusters.get(context.value.cluster)
        user = users.get(context.value.user)
        facts[context.name] = ContextFacts(
            name=context.name,
            current=context.name == entries.current_context,
            cluster=context.value.cluster,
            server=cluster.server if cluster else "",
            user=context.value.user,
            authentication=authentication(user),
            namespace=context.value.namespace,
            expires=_first_end(cluster, user, seen),
        )
    return tuple(facts.values())


def _first_clusters(entries: Entries) -> dict[str, Cluster]:
    return {
        entry.name: entry.value for entry in reversed(entries.clusters) if entry.value is not None
    }


def _first_users(entries: Entries) -> dict[str, User]:
    return {entry.name: entry.value for entry in reversed(entries.users) if entry.value is not None}


def authentication(user: User | None) -> str:
    """What a user logs in with, by kubectl's precedence: `client certificate and token`."""
    if user is None:
        return "nothing"
    kinds = []
    if user.client_certificate or user.client_certificate_data:
        kinds.append("client certificate")
    if user.token_file:
        kinds.append("token file")
    elif user.token:
        kinds.append("token")
    elif user.username or user.password:
        kinds.append("password")
    elif user.auth_provider is not None:
        kinds.append(f"provider {user.auth_provider.name}")
    elif user.exec is not None and not kinds:
        kinds.append(f"plugin {Path(user.exec.command).name}")
    ways = " and ".join(kinds) or "nothing"
    return f"{ways}, as {user.as_user}" if user.as_user else ways


def _first_end(cluster: Cluster | None, user: User | None, seen: Look) -> str:
    ends = [validity.ends for validity in of_cluster(cluster, seen)] if cluster else []
    ends += [validity.ends for validity in of_user(user, seen)] if user else []
    return f"{min(ends):%Y-%m-%d %H:%M} UTC" if ends else ""
