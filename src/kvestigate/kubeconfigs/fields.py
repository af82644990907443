"""The fields that a kubeconfig can have, and which of them may be shown. Pure."""

from __future__ import annotations

TOP = frozenset(
    {
        "apiVersion",
        "kind",
        "preferences",
        "clusters",
        "users",
        "contexts",
        "current-context",
        "extensions",
    }
)
CLUSTER = frozenset(
    {
        "server",
        "tls-server-name",
        "insecure-skip-tls-verify",
        "certificate-authority",
        "certificate-authority-data",
        "proxy-url",
        "disable-compression",
        "extensions",
    }
)
USER = frozenset(
    {
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
        "token",
        "tokenFile",
        "as",
        "as-uid",
        "as-groups",
        "as-user-extra",
        "username",
        "password",
        "auth-provider",
        "exec",
        "extensions",
    }
)
CONTEXT = frozenset({"cluster", "user", "namespace", "extensions"})
EXEC = frozenset(
    {
        "apiVersion",
        "command",
        "args",
        "env",
        "installHint",
        "provideClusterInfo",
        "interactiveMode",
    }
)

SHOWN = frozenset(
    {
        "current-context",
        "server",
        "tls-server-name",
        "insecure-skip-tls-verify",
        "certificate-authority",
        "disable-compression",
        "client-certificate",
        "client-key",
        "tokenFile",
        "as",
        "as-uid",
        "as-groups",
        "username",
        "cluster",
        "user",
        "namespace",
        "exec.apiVersion",
        "exec.command",
        "exec.installHint",
        "exec.provideClusterInfo",
        "exec.interactiveMode",
        "auth-provider.name",
        "auth-provider.config.idp-issuer-url",
        "auth-provider.config.client-id",
    }
)
"""What is known to be no secret. Anything else, known or not, is shown as a fingerprint."""

GUESSABLE = frozenset({"password"})
"""What people think up: not even a fingerprint is shown."""

PATHS = {
    "cluster": ("certificate-authority",),
    "user": ("client-certificate", "client-key", "tokenFile"),
}
"""Fields that name a file, relative to the kubeconfig; so does `exec.command` with a slash."""

DATA = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}
"""A field that names a file -> the one that holds its content, base64-encoded."""
