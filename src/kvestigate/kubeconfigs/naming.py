"""Names and fields: given twice, leading nowhere, misspelt, of no use. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from kvestigate.client.kubeconfig import Context
from kvestigate.errors import nearest
from kvestigate.kube.documents import Section
from kvestigate.kubeconfigs import fields
from kvestigate.kubeconfigs.entries import Entry
from kvestigate.kubeconfigs.look import Look
from kvestigate.kubeconfigs.model import Finding, kubectl
from kvestigate.render.severity import Severity


def repeated(look: Look, now: datetime) -> Iterator[Finding]:
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


def repeated_keys(look: Look, now: datetime) -> Iterator[Finding]:
    for top in look.entries.tops:
        for repetition in top.document.repeated:
            line, _, evidence = repetition.removeprefix("line ").partition(": ")
            yield Finding(
                "duplicate-key",
                Severity.WARNING,
                top.document.source,
                f"{top.document.source}:{line}",
                evidence,
                "the last value counts, which may not be the one you see",
            )


def dangling_current(look: Look, now: datetime) -> Iterator[Finding]:
    contexts = {entry.name for entry in look.entries.contexts}
    for name, where in look.entries.current[:1]:
        if name not in contexts:
            file, near = where.rsplit(":", 2)[0], nearest(name, contexts, cutoff=0.0)
            yield Finding(
                "dangling-name",
                Severity.CRITICAL,
                "current-context",
                where,
                f'there is no context "{name}"{_near(name, contexts)}',
                "commands without --context have no cluster to connect to",
                kubectl(file, "use-context", near) if near else "",
            )


def dangling(look: Look, now: datetime) -> Iterator[Finding]:
    clusters = {entry.name for entry in look.entries.clusters}
    users = {entry.name for entry in look.entries.users}
    for context in look.entries.contexts:
        value = context.value
        if value is None:
            continue
        if not value.cluster:
            yield _leads_nowhere(look, context, "cluster", "the context names no cluster")
        elif value.cluster not in clusters:
            evidence = f'there is no cluster "{value.cluster}"{_near(value.cluster, clusters)}'
            yield _leads_nowhere(look, context, "cluster", evidence)
        # A context without a user is fine: it logs in as nobody.
        if value.user and value.user not in users:
            evidence = f'there is no user "{value.user}"{_near(value.user, users)}'
            yield _leads_nowhere(look, context, "user", evidence)


def _leads_nowhere(look: Look, context: Entry[Context], field: str, text: str) -> Finding:
    current = context.name == look.entries.current_context
    return Finding(
        "dangling-name",
        Severity.CRITICAL if current else Severity.WARNING,
        context.label,
        context.section.where(field),
        text,
        "the context cannot be used",
        kubectl(context.file, "delete-context", context.name),
    )


def _near(name: str, known: Iterable[str]) -> str:
    similar = nearest(name, known)
    return f', but a "{similar}"' if similar else ""


def unused(look: Look, now: datetime) -> Iterator[Finding]:
    values = [entry.value for entry in look.entries.contexts if entry.value is not None]
    for word, used, entries in (
        ("cluster", {entry.cluster for entry in values}, look.entries.clusters),
        ("user", {entry.user for entry in values}, look.entries.users),
    ):
        for entry in entries:
            if entry.name not in used:
                yield Finding(
                    "unused",
                    Severity.INFO,
                    entry.label,
                    entry.section.where(),
                    "no context uses this entry",
                    "unused entries are forgotten, and their credentials stay valid",
                    kubectl(entry.file, f"delete-{word}", entry.name),
                )


def unknown_fields(look: Look, now: datetime) -> Iterator[Finding]:
    for top in look.entries.tops:
        yield from _strangers(top, fields.TOP, str(top.document.source))
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
        near = nearest(str(name), known)
        yield Finding(
            "unknown-field",
            Severity.WARNING,
            subject,
            section.where(name),
            f'there is no field "{name}"' + (f", but {near}" if near else ""),
            "the field is ignored and has no effect",
        )
