"""The operations on planes and fleets, as the catalog lists them. Operators only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from kvestigate.client.access import Access
from kvestigate.operation import (
    Consequence,
    Context,
    Effect,
    Operation,
    Reach,
    touches_nothing,
    with_access,
    with_progress,
)
from kvestigate.planes import environment, fleets, manage, rendering
from kvestigate.render.blocks import Block, text
from kvestigate.render.human import counted

Input = TypeVar("Input")
Output = TypeVar("Output")

_MEANT = f"--apply {Consequence.MODIFIES_CLUSTER.flag}"


def _reading(
    name: str,
    summary: str,
    input: type[Input],
    output: type[Output],
    handler: Callable[[Access, Input], Awaitable[Output]],
    render: Callable[[Output], Sequence[Block]],
    examples: tuple[str, ...],
    description: str = "",
) -> Operation[Input, Output]:
    return Operation(
        name=name,
        summary=summary,
        description=description,
        examples=examples,
        input=input,
        output=output,
        effect=Effect.READ,
        touches=touches_nothing,
        handler=with_access(handler),
        render=render,
        reaches=Reach.PLANES,
    )


def _changing(
    name: str,
    summary: str,
    input: type[Input],
    output: type[Output],
    handler: Callable[[Context, Input], Awaitable[Output]],
    announce: Callable[[Input, str], str],
    render: Callable[[Output], Sequence[Block]],
    examples: tuple[str, ...],
    description: str = "",
    effect: Effect = Effect.WRITE,
    **more: Any,
) -> Operation[Input, Output]:
    """One that cannot look ahead: it announces in a line what it will do, and where."""
    return Operation(
        name=name,
        summary=summary,
        description=description,
        examples=tuple(f"{example} {_MEANT}" for example in examples),
        input=input,
        output=output,
        effect=effect,
        consequence=Consequence.MODIFIES_CLUSTER,
        touches=touches_nothing,
        handler=handler,
        announce=lambda context, options: announce(options, str(context.access.server)),
        render=render,
        reaches=Reach.PLANES,
        **more,
    )


def _fork_line(options: environment.ForkOptions, server: str) -> str:
    times = "once" if (options.count or 1) == 1 else f"{options.count} times"
    return f"fork plane {options.id} at {server} {times}"


def _step_line(options: environment.StepOptions, server: str) -> str:
    length = "until no controller has work left"
    if options.seconds is not None:
        length = f"for {options.seconds:g} s"
    return f"step plane {options.id} at {server} {length}"


LIST = _reading(
    "plane.list",
    "List the planes of a running server.",
    manage.Everything,
    manage.PlaneList,
    manage.list_planes,
    rendering.planes_blocks,
    ("kvestigate plane list", "kvestigate plane list -o json"),
)
CREATE = _changing(
    "plane.create",
    "Create a plane on a running server.",
    manage.NewPlane,
    manage.Plane,
    with_access(manage.create_plane),
    lambda options, server: f"create plane {options.id} at {server}",
    rendering.plane_blocks,
    (
        "kvestigate plane create alpha",
        "kvestigate plane create alpha --clock virtual --seed 7",
    ),
)
DELETE = _changing(
    "plane.delete",
    "Delete a plane with all its objects.",
    manage.PlaneOptions,
    manage.DeletedPlane,
    with_access(manage.delete_plane),
    lambda options, server: f"delete plane {options.id} at {server} with all its objects",
    lambda deleted: [text(f"plane {deleted.id} is deleted")],
    ("kvestigate plane delete alpha",),
    effect=Effect.DESTROY,
)
SNAPSHOT = _reading(
    "plane.snapshot",
    "Show all objects of a plane at one revision.",
    environment.SnapshotOptions,
    environment.Snapshot,
    environment.snapshot,
    rendering.snapshot_blocks,
    (
        "kvestigate plane snapshot alpha",
        "kvestigate plane snapshot alpha --resource pods -o json",
    ),
    "The table counts objects; -o json has the objects. Values of Secrets are hidden.",
)
FORK = _changing(
    "plane.fork",
    "Copy a plane; the copies are independent of it.",
    environment.ForkOptions,
    environment.Forks,
    with_access(environment.fork),
    _fork_line,
    rendering.planes_blocks,
    (
        "kvestigate plane fork alpha --name beta",
        "kvestigate plane fork alpha --count 8",
    ),
)
CHECKPOINT = _changing(
    "plane.checkpoint",
    "Save the current state of a plane as a checkpoint.",
    environment.CheckpointOptions,
    environment.Checkpoint,
    with_access(environment.checkpoint),
    lambda options, server: f"checkpoint plane {options.id} at {server}",
    rendering.checkpoint_blocks,
    ("kvestigate plane checkpoint alpha --name start",),
)
RESTORE = _changing(
    "plane.restore",
    "Restore a plane to an earlier state.",
    environment.RestoreOptions,
    environment.Restored,
    with_access(environment.restore),
    lambda options, server: (
        f"restore plane {options.id} at {server} to {options.checkpoint or options.revision}"
    ),
    rendering.restored_blocks,
    (
        "kvestigate plane restore alpha --checkpoint start",
        "kvestigate plane restore alpha --revision 1042",
        "kvestigate plane restore alpha --checkpoint start --seed 8",
    ),
    "Objects that changed since then are changed back; objects that were created are deleted.",
    effect=Effect.DESTROY,
)
DIFF = _reading(
    "plane.diff",
    "Compare two states of a plane, or two planes.",
    environment.DiffOptions,
    environment.Difference,
    environment.diff,
    rendering.difference_blocks,
    (
        "kvestigate plane diff alpha checkpoint:start",
        "kvestigate plane diff alpha plane:alpha plane:beta -o json",
    ),
    "FROM and TO are a revision (1042), checkpoint:NAME or plane:ID. Without TO, FROM is compared "
    "with the current state. Values of Secrets are hidden.",
)
EVENTS = _reading(
    "plane.events",
    "Show every change of a plane, with the user who made it.",
    environment.EventsOptions,
    environment.Events,
    environment.events,
    rendering.events_blocks,
    (
        "kvestigate plane events alpha",
        "kvestigate plane events alpha --since 1042 --resource pods",
    ),
)
STEP = _changing(
    "plane.step",
    "Let virtual time pass in a plane with a virtual clock.",
    environment.StepOptions,
    environment.Stepped,
    with_access(environment.step),
    _step_line,
    rendering.stepped_blocks,
    ("kvestigate plane step alpha --seconds 60", "kvestigate plane step alpha"),
)
FLEET_CREATE = _changing(
    "fleet.create",
    "Create a fleet of identical planes.",
    fleets.NewFleet,
    fleets.Fleet,
    with_progress(fleets.create),
    lambda options, server: (
        f"create fleet {options.name} of {counted(options.replicas, 'plane')} at {server}"
    ),
    rendering.made_fleet_blocks,
    (
        "kvestigate fleet create crew --replicas 1000",
        "kvestigate fleet create crew --replicas 8 --from-plane alpha --ttl 3600",
    ),
    doing=lambda options: "making",
    counts=True,
)
FLEET_SCALE = _changing(
    "fleet.scale",
    "Set the number of members of a fleet.",
    fleets.ScaleOptions,
    fleets.Fleet,
    with_progress(fleets.scale),
    lambda options, server: (
        f"scale fleet {options.name} at {server} to {counted(options.replicas, 'plane')}"
    ),
    rendering.made_fleet_blocks,
    ("kvestigate fleet scale crew --replicas 20",),
    "Surplus members are deleted with all their objects.",
    effect=Effect.DESTROY,
    doing=lambda options: "making",
    counts=True,
)
FLEET_STATUS = _reading(
    "fleet.status",
    "Show the members of a fleet and their phases.",
    fleets.FleetOptions,
    fleets.Fleet,
    fleets.status,
    rendering.fleet_blocks,
    ("kvestigate fleet status crew", "kvestigate fleet status crew -o json"),
)
FLEET_DELETE = _changing(
    "fleet.delete",
    "Delete a fleet with all its members.",
    fleets.FleetOptions,
    fleets.Deleted,
    with_access(fleets.delete),
    lambda options, server: f"delete fleet {options.name} at {server} with all its members",
    lambda done: [text(f"fleet {done.name} is {'deleted' if done.gone else 'being deleted'}")],
    ("kvestigate fleet delete crew",),
    effect=Effect.DESTROY,
    doing=lambda options: "deleting",
)
