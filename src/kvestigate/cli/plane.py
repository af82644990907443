"""`kvestigate plane`: serve Kubernetes control planes, and look after those of a server."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.group import command, group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import SEED, whole_number
from kvestigate.errors import NoCluster, UsageError
from kvestigate.render.human import counted

if TYPE_CHECKING:
    from kvestigate.client.access import Access
    from kvestigate.cluster.plane.front.serving import Listen, Serving

F = TypeVar("F")

KUBECONFIG = "admin.kubeconfig"


@group("plane")
def plane() -> None:
    """Serve complete Kubernetes control planes, thousands in one process."""


def data_option(function: F) -> F:
    option: Any = click.option(
        "--data",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="Directory with the planes and keys of the server; "
        "~/.local/state/kvestigate/plane by default.",
    )
    decorated: F = option(function)
    return decorated


def clock_options(function: F) -> F:
    clock: Any = click.option(
        "--clock",
        type=click.Choice(["wall", "virtual"]),
        default="wall",
        show_default=True,
        help="The clock of the plane; virtual time passes only with `plane step`.",
    )
    seed: Any = click.option(
        "--seed",
        metavar="N",
        type=SEED,
        default=0,
        help="Seed of every random choice in a plane with a virtual clock.",
    )
    decorated: F = clock(seed(function))
    return decorated


@command(
    "serve",
    into=plane,
    examples=(
        "kvestigate plane serve",
        "kvestigate plane serve --memory --listen 127.0.0.1:0",
        "kvestigate plane serve --data /srv/planes --listen 0.0.0.0:6443",
        "kvestigate plane serve --etcd http://10.0.0.1:2379,http://10.0.0.2:2379",
    ),
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:6443",
    show_default=True,
    help="Address to listen on; with port 0 the system chooses a free port.",
)
@data_option
@click.option(
    "--memory",
    is_flag=True,
    help="Keep planes in memory only, until the server stops.",
)
@click.option(
    "--etcd",
    metavar="URL[,URL...]",
    help="Keep planes in this etcd; several servers may share it.",
)
@click.option(
    "--etcd-prefix",
    metavar="KEY",
    default="/kvestigate",
    show_default=True,
    help="Prefix of all keys in etcd; servers with the same prefix serve the same planes.",
)
@click.option(
    "--etcd-ca",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help="CA certificate of the etcd servers, in PEM; the system's CAs if not given.",
)
@click.option(
    "--etcd-cert",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Client certificate for etcd, in PEM.",
)
@click.option(
    "--etcd-key",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Private key of the client certificate for etcd, in PEM.",
)
@click.option(
    "--auth",
    type=click.Choice(["rbac", "none"]),
    default="rbac",
    show_default=True,
    help="Authorization: by RBAC, or none (everyone may do everything; loopback only).",
)
@click.option(
    "--token-file",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help='Static tokens: lines of token,user,uid,"group1,group2".',
)
@click.option(
    "--audit-log",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write every request to this file, one JSON line each.",
)
@click.option(
    "--controllers/--no-controllers",
    default=False,
    show_default=True,
    help="Run controllers, a scheduler and simulated nodes in every plane that has work.",
)
@click.option(
    "--nodes",
    metavar="N",
    type=whole_number(0, 1000),
    default=1,
    show_default=True,
    help="Number of simulated nodes in a plane without Node objects.",
)
def serve(
    options: GlobalOptions,
    listen: str,
    data: Path | None,
    memory: bool,
    etcd: str | None,
    etcd_prefix: str,
    etcd_ca: Path | None,
    etcd_cert: Path | None,
    etcd_key: Path | None,
    auth: str,
    token_file: Path | None,
    audit_log: Path | None,
    controllers: bool,
    nodes: int,
) -> None:
    """Serve planes until SIGTERM or Ctrl-C.

    The root plane is served at /, every other plane at /clusters/ID/control-plane. A plane is
    created by the first request to it. The admin kubeconfig is written to the data directory.

    Without --controllers a plane is an API server only; you can run controllers of your own
    against it. Planes with a virtual clock always have controllers, which work while
    `plane step` moves the clock.
    """
    from kvestigate.cluster.plane.front.serving import Auth, EtcdOptions, ServeOptions, nobody, run
    from kvestigate.cluster.scenarios.library import objects_of
    from kvestigate.cluster.workforce.registry import start_workers

    shared = None
    hire = start_workers(controllers=controllers, nodes=nodes)
    if etcd is None:
        _refuse_etcd_options(etcd_ca, etcd_cert, etcd_key)
    else:
        if controllers:
            raise UsageError(
                "--controllers cannot be used with --etcd: every server that shares the etcd "
                "would run controllers on the same planes",
                hint="leave out --controllers and run controllers of your own against the planes",
            )
        hire = nobody
        urls = tuple(url.strip() for url in etcd.split(","))
        shared = EtcdOptions(urls, etcd_prefix, etcd_ca, etcd_cert, etcd_key)
    chosen = ServeOptions(
        data=data or data_directory(),
        listen=parse_listen(listen),
        memory=memory,
        etcd=shared,
        auth=Auth(auth),
        token_file=token_file,
        audit_log=audit_log,
        hire=hire,
        scenarios=objects_of,
    )
    run(chosen, announce)


def _refuse_etcd_options(ca: Path | None, cert: Path | None, key: Path | None) -> None:
    """Refuse the options of etcd without --etcd: planes would silently be kept on this machine."""
    for name, value in (("--etcd-ca", ca), ("--etcd-cert", cert), ("--etcd-key", key)):
        if value is not None:
            raise UsageError(f"{name} can only be used with --etcd", hint="add --etcd URL")


def announce(serving: Serving) -> None:
    click.echo(f"serving {counted(serving.planes, 'plane')} at {serving.url}")
    click.echo(f"kubeconfig: {serving.kubeconfig}")
    click.echo(f"next: kubectl --kubeconfig {serving.kubeconfig} get namespaces")


def parse_listen(text: str) -> Listen:
    from kvestigate.cluster.plane.front.serving import Listen

    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            f"--listen: {text!r} is not HOST:PORT", hint="write 127.0.0.1:6443 or [::1]:6443"
        )
    return Listen(host, int(port))


@command(
    "kubeconfig",
    into=plane,
    examples=(
        "kvestigate plane kubeconfig alpha > alpha.kubeconfig",
        "kvestigate plane kubeconfig root",
    ),
)
@click.argument("id")
@data_option
def kubeconfig(options: GlobalOptions, id: str, data: Path | None) -> None:
    """Print a kubeconfig for the plane ID.

    It contains the admin credentials of the server. The plane is created by the first request.
    """
    import yaml

    from kvestigate.planes.kubeconfig import for_plane

    path = Path(options.kubeconfig) if options.kubeconfig else _kubeconfig(data)
    try:
        server = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise NoCluster(f"{path} cannot be read: {error}") from error
    if not isinstance(server, dict):
        raise NoCluster(f"{path} is not a kubeconfig: it has no fields")
    click.echo(yaml.safe_dump(for_plane(server, id), sort_keys=False), nl=False)


@command("list", into=plane, examples=("kvestigate plane list", "kvestigate plane list -o json"))
@data_option
async def list_(options: GlobalOptions, data: Path | None) -> None:
    """List the planes of a running server."""
    from kvestigate.planes.manage import Everything, list_planes
    from kvestigate.planes.rendering import planes_blocks

    emit(options, await list_planes(server_access(options, data), Everything()), planes_blocks)


@command(
    "create",
    into=plane,
    examples=(
        "kvestigate plane create alpha --apply --i-understand-this-modifies-cluster",
        "kvestigate plane create alpha --clock virtual --seed 7 --apply "
        "--i-understand-this-modifies-cluster",
    ),
)
@click.argument("id")
@clock_options
@data_option
@writes(Consequence.MODIFIES_CLUSTER)
async def create(
    options: GlobalOptions,
    id: str,
    clock: Literal["wall", "virtual"],
    seed: int,
    data: Path | None,
    confirmation: Confirmation,
) -> None:
    """Create the plane ID on a running server."""
    from kvestigate.planes.manage import NewPlane, create_plane
    from kvestigate.planes.rendering import plane_blocks

    access = server_access(options, data)
    click.echo(f"create plane {id} at {access.server}", err=True)
    confirmation.require()
    emit(options, await create_plane(access, NewPlane(id, clock, seed)), plane_blocks)


@command(
    "delete",
    into=plane,
    examples=("kvestigate plane delete alpha --apply --i-understand-this-modifies-cluster",),
)
@click.argument("id")
@data_option
@writes(Consequence.MODIFIES_CLUSTER)
async def delete(
    options: GlobalOptions, id: str, data: Path | None, confirmation: Confirmation
) -> None:
    """Delete the plane ID with all its objects."""
    from kvestigate.planes.manage import PlaneOptions, delete_plane

    access = server_access(options, data)
    click.echo(f"delete plane {id} at {access.server} with all its objects", err=True)
    confirmation.require()
    await delete_plane(access, PlaneOptions(id))
    click.echo(f"plane {id} is deleted")


def data_directory() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "kvestigate" / "plane"


def server_access(options: GlobalOptions, data: Path | None) -> Access:
    """The server of --kubeconfig or --context; without them, the one with that data directory."""
    if not options.kubeconfig and not options.context:
        options = replace(options, kubeconfig=str(_kubeconfig(data)))
    return access_of(options)


def _kubeconfig(data: Path | None) -> Path:
    directory = data or data_directory()
    path = directory / KUBECONFIG
    if not path.exists():
        raise NoCluster(
            f"no server of planes has used the data directory {directory}: {KUBECONFIG} is missing",
            hint="`kvestigate plane serve` starts a server; --kubeconfig names that of another",
        )
    return path
