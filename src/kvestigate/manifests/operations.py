"""The operations `deploy` and `delete`, as the catalog lists them. Operators only."""

from __future__ import annotations

from kvestigate.errors import (
    EXIT_CONFLICT,
    EXIT_DENIED,
    EXIT_FAILED,
    EXIT_NO_CLUSTER,
    EXIT_OK,
    EXIT_TIMEOUT,
)
from kvestigate.manifests.delete import LEAVING, DeleteOptions, Deletion, delete
from kvestigate.manifests.deploy import DeployOptions, deploy
from kvestigate.manifests.model import Deployment, Outcome
from kvestigate.manifests.rendering import deletion_blocks, deployment_blocks
from kvestigate.operation import Consequence, Effect, Operation, Touched


def _has_changes(done: Deployment) -> bool:
    return not done.failed and any(
        result.outcome is not Outcome.UNCHANGED for result in done.objects
    )


def _exit_code(done: Deployment) -> int:
    bad = {result.outcome for result in done.objects if not result.outcome.good}
    if not done.failed:
        return EXIT_OK
    if bad == {Outcome.CONFLICT}:
        return EXIT_CONFLICT
    codes = {result.exit_code for result in done.objects if result.outcome is Outcome.FAILED}
    common = codes.pop() if len(codes) == 1 and bad <= {Outcome.FAILED, Outcome.NOT_TRIED} else 0
    return common if common in (EXIT_NO_CLUSTER, EXIT_DENIED, EXIT_TIMEOUT) else EXIT_FAILED


DEPLOY: Operation[DeployOptions, Deployment] = Operation(
    name="deploy",
    summary="Apply manifests in the required order, and show the changes.",
    input=DeployOptions,
    output=Deployment,
    effect=Effect.WRITE,
    consequence=Consequence.MODIFIES_CLUSTER,
    touches=lambda options: Touched(namespaces=(options.namespace,) if options.namespace else ()),
    handler=deploy,
    doing=lambda options: "deploying",
    counts=True,
    render=deployment_blocks,
    pending=_has_changes,
    exit_code=_exit_code,
)
DELETE: Operation[DeleteOptions, Deletion] = Operation(
    name="delete",
    summary="Delete one object, and show the objects that are deleted with it.",
    description=(
        "KIND is any type that the server has: pod, deploy, widgets.example.org; KIND/NAME is "
        "understood, too. Exits with 7 if it is not gone in time; the finalizers that it waits for "
        "are named."
    ),
    examples=(
        "kvestigate delete deployment my-app -n web",
        "kvestigate delete pod stuck -n web --apply --i-understand-this-modifies-cluster",
        "kvestigate delete widgets.example.org blue --cascade orphan",
    ),
    input=DeleteOptions,
    output=Deletion,
    effect=Effect.DESTROY,
    consequence=Consequence.MODIFIES_CLUSTER,
    touches=lambda options: Touched(),
    handler=delete,
    counts=True,
    render=deletion_blocks,
    exit_code=lambda done: EXIT_TIMEOUT if done.outcome == LEAVING else EXIT_OK,
)
