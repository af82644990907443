"""What all pages work with: the clusters, who asked for what, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass

from kvestigate import catalog
from kvestigate.aio.clock import Clock
from kvestigate.client.access import Access
from kvestigate.console.contexts import Cluster, Contexts
from kvestigate.console.forms import Values, command_line
from kvestigate.console.frame import Visit, failure, page
from kvestigate.console.markup import Html
from kvestigate.errors import Forbidden, KvestigateError, NoCluster, Unauthorized


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: for whom, and its parameters."""

    visit: Visit
    values: Values

    def one(self, name: str) -> str:
        """The first value of a parameter; empty if there is none."""
        return next(iter(self.values.get(name, ())), "")


@dataclass(frozen=True, slots=True)
class Desk:
    """The console behind the pages."""

    contexts: Contexts
    allow_writes: bool
    clock: Clock

    def asked(self, values: Values, form_token: str) -> Asked:
        """The request; without a context, the current one of the kubeconfig is meant."""
        context = next(iter(values.get("context", ())), "") or self.contexts.default
        visit = Visit(self.contexts.names, context, form_token, self.allow_writes)
        return Asked(visit, values)

    async def cluster(self, asked: Asked) -> Cluster:
        return await self.contexts.cluster(asked.visit.context)

    def access(self, context: str, namespace: str = "") -> Access:
        return self.contexts.access(context, namespace)

    def command(self, visit: Visit, name: str) -> str:
        """The command line of an operation without parameters."""
        return command_line(catalog.operation(name), {}, visit.context)


def failed(asked: Asked, error: KvestigateError) -> Html:
    """The page instead of one that could not be made."""
    return page(asked.visit, "-", "That did not work", refusal(error))


def refusal(error: KvestigateError, before: str = "") -> Html:
    """What went wrong, and the way out."""
    return failure(f"{before}{error.message}", error.hint or _way_out(error))


def _way_out(error: KvestigateError) -> str:
    if isinstance(error, Forbidden | Unauthorized):
        return (
            "You act with the rights of your kubeconfig: choose another context, or ask for them."
        )
    if isinstance(error, NoCluster):
        return "Check that the cluster runs and that its address in the kubeconfig is reachable."
    return ""
