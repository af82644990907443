"""PURE. What is wrong with kubeconfigs: a function a rule, and the one list of them."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from kvestigate.client.located import Section
from kvestigate.kubeconfigs import fields
from kvestigate.kubeconfigs.entries import Entry
from kvestigate.kubeconfigs.expiry import Validity, key_fits, of_cluster, of_user
from kvestigate.kubeconfigs.look import Look
from kvestigate.kubeconfigs.model import Finding, Severity

SOON = timedelta(days=30)

Rule = Callable[[Look, datetime], Iterable[Finding]]


def findings(look: Look, now: datetime) -> tuple[Finding, ...]:
    """Of all rules, the worst first."""
    found = [finding for rule in RULES for finding in rule(look, now)]
    return tuple(sorted(found, key=lambda it: it.severity.rank))


def _kubectl(file: Path | str, *words: str) -> str:
    return shlex.join(("kubectl", "--kubeconfig", str(file), "config", *words))


def _unreadable(look: Look, now: datetime) -> Iterator[Finding]:
    for problem in (*look.entries.problems, *look.unusable):
        where, said = _split(problem.error.message, problem.where)
        yield Finding(
            "unusable",
            Severity.CRITICAL,
            problem.subject,
            where,
            said.removeprefix(f"{problem.subject}: "),
            problem.error.hint or "kubectl and every other client refuse it",
        )


def _split(message: str, where: str) -> tuple[str, str]:
    """An error begins with its place, which is finer than that of the entry."""
    file = where.partition(":")[0]
    place, colon, said = message.partition(": ")
    return (place, said) if colon and place.startswith(file) else (where, message)


def _repeated(look: Look, now: datetime) -> Iterator[Finding]:
    kinds: tuple[list[Any], ...] = (
        look.entries.clusters,
        look.entries.users,
        look.entries.contexts,
    )
    for entries in kinds:
        first: dict[str, Entry[Any]] = {}
        for entry in entries:
            earlier = first.setdefault(entry.name, entry)
            if earlier is entry:
                continue
            same = earlier.file == entry.file
            yield Finding(
                "duplicate-name",
                Severity.CRITICAL if same else Severity.WARNING,
                entry.label,
                entry.section.where(),
                f"the name is already taken at {earlier.section.where()}",
                "kubectl refuses the file" if same else "the first one wins, this one is ignored",
                "" if same else _merge_command(look),
            )


def _merge_command(look: Look) -> str:
    files = shlex.join(map(str, look.files))
    return f"kvestigate kubeconfig convert merge {files} --out merged.yaml"


def _dangling(look: Look, now: datetime) -> Iterator[Finding]:
    entries = look.entries
    clusters = {it.name for it in entries.clusters}
    users = {it.name for it in entries.users}
    contexts = {it.name for it in entries.contexts}
    for name, where in entries.current[:1]:
        if name not in contexts:
            file = where.rsplit(":", 2)[0]
            yield Finding(
                "dangling-name",
                Severity.CRITICAL,
                "current-context",
                where,
                f'there is no context "{name}"{_near(name, contexts)}',
                "commands without --context do not know what to talk to",
                _kubectl(file, "use-context", _nearest(name, contexts)) if contexts else "",
            )
    for context in entries.contexts:
        if context.value is None:
            continue
        current = context.name == entries.current_context
        for field, name, known in (
            ("cluster", context.value.cluster, clusters),
            ("user", context.value.user, users),
        ):
            if name in known or (not name and field == "user"):
                continue
            said = f'there is no {field} "{name}"{_near(name, known)}' if name else f"no {field}"
            yield Finding(
                "dangling-name",
                Severity.CRITICAL if current else Severity.WARNING,
                context.label,
                context.section.where(field),
                said,
                "the context cannot be used",
                _kubectl(context.file, "delete-context", context.name),
            )


def _near(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, sorted(known), n=1)
    return f', but a "{found[0]}"' if found else ""


def _nearest(name: str, known: Iterable[str]) -> str:
    return difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.0)[0]


def _unused(look: Look, now: datetime) -> Iterator[Finding]:
    values = [it.value for it in look.entries.contexts if it.value is not None]
    for word, used, entries in (
        ("cluster", {it.cluster for it in values}, look.entries.clusters),
        ("user", {it.user for it in values}, look.entries.users),
    ):
        for entry in entries:
            if entry.name not in used:
                yield Finding(
                    "unused",
                    Severity.INFO,
                    entry.label,
                    entry.section.where(),
                    "no context uses it",
                    "what nobody uses is forgotten, credentials included",
                    _kubectl(entry.file, f"delete-{word}", entry.name),
                )


def _insecure(look: Look, now: datetime) -> Iterator[Finding]:
    for entry in look.entries.clusters:
        cluster = entry.value
        if cluster is None:
            continue
        if cluster.insecure_skip_tls_verify:
            yield Finding(
                "insecure-tls",
                Severity.WARNING,
                entry.label,
                entry.section.where("insecure-skip-tls-verify"),
                "insecure-skip-tls-verify is true",
                "whoever sits between here and the server can read and use the credentials",
                _kubectl(
                    entry.file,
                    "set-cluster",
                    entry.name,
                    "--insecure-skip-tls-verify=false",
                    "--certificate-authority=CA_FILE",
                    "--embed-certs",
                ),
            )
        if cluster.server.startswith("http://"):
            yield Finding(
                "plain-http",
                Severity.WARNING,
                entry.label,
                entry.section.where("server"),
                "the server is reached without TLS",
                "everything can be read on the way, and no credentials are sent",
                _kubectl(entry.file, "set-cluster", entry.name, "--server=https://HOST:PORT"),
            )


def _passwords(look: Look, now: datetime) -> Iterator[Finding]:
    for entry in look.entries.users:
        if entry.value is not None and entry.value.password:
            yield Finding(
                "password",
                Severity.WARNING,
                entry.label,
                entry.section.where("password"),
                "it logs in with a password",
                "Kubernetes has not accepted passwords since 1.19",
                _kubectl(entry.file, "delete-user", entry.name),
            )


def _plugins(look: Look, now: datetime) -> Iterator[Finding]:
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
                hint[0] if hint else "without it this user cannot log in",
                shlex.join(("command", "-v", plugin.command)),
            )


def _providers(look: Look, now: datetime) -> Iterator[Finding]:
    for entry in look.entries.users:
        provider = entry.value.auth_provider if entry.value is not None else None
        if provider is not None and provider.name != "oidc":
            yield Finding(
                "removed-provider",
                Severity.CRITICAL,
                entry.label,
                entry.section.where("auth-provider", "name"),
                f'auth-provider "{provider.name}" is no longer supported by Kubernetes',
                "this user cannot log in; a credential plugin takes its place",
            )


def _expiring(look: Look, now: datetime) -> Iterator[Finding]:
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
        "the server refuses it" if expired else f"{left.days} days are left to renew it",
        "kvestigate kubeconfig verify",
    )


def _mismatched(look: Look, now: datetime) -> Iterator[Finding]:
    for entry in look.entries.users:
        if entry.value is not None and key_fits(entry.value, look) is False:
            field = "client-key-data" if entry.value.client_key_data else "client-key"
            yield Finding(
                "wrong-key",
                Severity.CRITICAL,
                entry.label,
                entry.section.where(field),
                "the client key is not that of the client certificate",
                "no connection can be made with them",
            )


def _permissions(look: Look, now: datetime) -> Iterator[Finding]:
    for path, mode in look.modes.items():
        fix = shlex.join(("chmod", "600", path))
        if mode & 0o022:
            everybody = bool(mode & 0o002)
            yield Finding(
                "writable-by-others",
                # Many systems give each user a group of their own.
                Severity.CRITICAL if everybody else Severity.WARNING,
                path,
                path,
                f"{'everybody' if everybody else 'its group'} can change it (mode {mode:04o})",
                "with exec, it can be made to run any program as you",
                fix,
            )
        elif mode & 0o044:
            whom = "everybody" if mode & 0o004 else "its group"
            yield Finding(
                "readable-by-others",
                Severity.WARNING,
                path,
                path,
                f"{whom} on this machine can read it (mode {mode:04o})",
                "whoever reads it is you, as far as the cluster can tell",
                fix,
            )


def _unknown_fields(look: Look, now: datetime) -> Iterator[Finding]:
    for top in look.entries.tops:
        yield from _strangers(top, fields.TOP, str(top.document.file))
    known: tuple[tuple[Iterable[Entry[Any]], frozenset[str]], ...] = (
        (look.entries.clusters, fields.CLUSTER),
        (look.entries.users, fields.USER),
        (look.entries.contexts, fields.CONTEXT),
    )
    for entries, names in known:
        for entry in entries:
            yield from _strangers(entry.section, names, entry.label)
    for user in look.entries.users:
        if user.value is not None and user.value.exec is not None:
            yield from _strangers(user.value.exec.section, fields.EXEC, user.label)


def _strangers(section: Section, known: frozenset[str], subject: str) -> Iterator[Finding]:
    for name in section.values:
        if name in known:
            continue
        near = difflib.get_close_matches(str(name), sorted(known), n=1)
        yield Finding(
            "unknown-field",
            Severity.WARNING,
            subject,
            section.where(name),
            f'there is no field "{name}"' + (f", but {near[0]}" if near else ""),
            "it is ignored, so it does not do what it was written for",
        )


RULES: tuple[Rule, ...] = (
    _unreadable,
    _repeated,
    _dangling,
    _expiring,
    _mismatched,
    _plugins,
    _providers,
    _permissions,
    _insecure,
    _passwords,
    _unknown_fields,
    _unused,
)
