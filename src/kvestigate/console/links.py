"""The addresses of pages, and the commands that show the same. Pure.

The context is a parameter of every address, so a link can be sent to somebody with the same
kubeconfig, and two tabs can show two clusters.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from kvestigate.kube.resources import Resource

CLUSTER_SCOPE = "-"
"""Stands for the namespace of an object that is in none."""


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses within one context of the kubeconfig."""

    context: str

    def to(self, *segments: str, **parameters: str | int | None) -> str:
        """`/explore/pods?context=demo&q=web`; empty parameters are left out."""
        path = "/" + "/".join(quote(segment, safe="") for segment in segments)
        given = {"context": self.context, **parameters}
        query = urlencode({name: value for name, value in given.items() if value not in ("", None)})
        return f"{path}?{query}" if query else path

    def kind(self, resource: Resource, **parameters: str | int | None) -> str:
        return self.to("explore", resource.qualified, **parameters)

    def object(
        self, resource: str, namespace: str, name: str, part: str = "", **parameters: str | int
    ) -> str:
        """The page of an object; `resource` is any word for its type: `Deployment`, `po`."""
        parts = ("object", resource, namespace or CLUSTER_SCOPE, name, *([part] if part else []))
        return self.to(*parts, **parameters)

    def command(self, program: str, *words: str, namespace: str = "") -> str:
        """A command to paste into a shell: whoever named an object, a name stays one word.

        Names of roles may have any characters, and a namespace may come with a link of anybody.
        """
        chosen = ["--context", self.context] if self.context else []
        where = ["-n", namespace] if namespace else []
        return shlex.join([program, *chosen, *where, *words])
