"""Who else can read, change or overhear what only you should know. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import datetime

from kvestigate.kubeconfigs.look import Look
from kvestigate.kubeconfigs.model import Finding, kubectl
from kvestigate.render.severity import Severity


def permissions(look: Look, now: datetime) -> Iterator[Finding]:
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
                "whoever changes the file can make it run any program as you, with exec",
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
                "whoever reads the file can act as you on the cluster",
                fix,
            )


def insecure(look: Look, now: datetime) -> Iterator[Finding]:
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
                "anyone on the network path to the server can read and use the credentials",
                kubectl(
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
                "the server URL has no TLS",
                "all traffic can be read on the network, and no credentials are sent",
                kubectl(entry.file, "set-cluster", entry.name, "--server=https://HOST:PORT"),
            )
