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
        help="Where the server keeps planes and keys; ~/.local/state/kvestigate/plane by default.",
    )
    decorated: F = option(function)
    return decorated


def clock_options(function: F) -> F:
    clock: Any = click.option(
        "--clock",
        type=click.Choice(["wall", "virtual"]),
        default="wall",
        show_default=True,
        help="Whose time it lives in; virtual time passes with `plane step` only.",
    )
    seed: Any = click.option(
        "--seed",
        metavar="N",
        type=SEED,
        default=0,
        help="Seed of all that looks random in virtual time.",
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
    help="Where to take requests; port 0 is one that the system chooses.",
)
@data_option
@click.option("--memory", is_flag=True, help="Keep no planes on disk: they end with the server.")
@click.option(
    "--etcd",
    metavar="URL[,URL...]",
    help="Keep the planes in an etcd, which several servers may share.",
)
@click.option(
    "--etcd-prefix",
    metavar="KEY",
    default="/kvestigate",
    show_default=True,
    help="Where in the etcd: servers with the same prefix serve the same planes.",
)
@click.option(
    "--etcd-ca",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Who signs the etcd's certificate, in PEM; the system's CAs if not given.",
)
@click.option(
    "--etcd-cert",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The certificate to show to the etcd, in PEM.",
)
@click.option(
    "--etcd-key",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The key of that certificate, in PEM.",
)
@click.option(
    "--auth",
    type=click.Choice(["rbac", "none"]),
    default="rbac",
    show_default=True,
    help="Who gets in: who RBAC lets in, or everyone (on loopback only).",
)
@click.option(
    "--token-file",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help='Users who get in with a token: lines of token,user,uid,"group1,group2".',
)
@click.option(
    "--audit-log",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Note every request in this file, a JSON line each.",
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
    help="Simulated nodes of a plane that has no Node of its own.",
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

    The root plane is at /, every other at /clusters/ID/control-plane; a plane is made when it
    is first asked for. The owner's kubeconfig is written into the data directory.

    Without --controllers a plane is an API server alone, and takes the controllers that others
    run. Planes with a virtual clock always have their own, which work when they are stepped.
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
                "--controllers: servers that share an etcd do not agree on who works on a plane",
                hint="leave it out, and point controllers of your own at the planes",
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
    """Who gives them takes the planes to be on an etcd; they would be lost with this machine."""
    for name, value in (("--etcd-ca", ca), ("--etcd-cert", cert), ("--etcd-key", key)):
        if value is not None:
            raise UsageError(f"{name} needs --etcd, whose servers it is for", hint="--etcd URL")


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

    It holds the credentials of the server's owner. The plane is made when it is first used.
    """
    import yaml

    from kvestigate.planes.kubeconfig import for_plane

    path = Path(options.kubeconfig) if options.kubeconfig else _kubeconfig(data)
    try:
        server = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise NoCluster(f"{path} cannot be read: {error}") from error
    if not isinstance(server, dict):
        raise NoCluster(f"{path} is no kubeconfig")
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
    """Delete the plane ID with everything in it."""
    from kvestigate.planes.manage import PlaneOptions, delete_plane

    access = server_access(options, data)
    click.echo(f"delete plane {id} at {access.server} with everything in it", err=True)
    confirmation.require()
    await delete_plane(access, PlaneOptions(id))
    click.echo(f"plane {id} is deleted")


def data_directory() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "kvestigate" / "plane"


def server_access(options: GlobalOptions, data: Path | None) -> Access:
    """The server that flags mean: a kubeconfig's, else the one with that data directory."""
    if not options.kubeconfig and not options.context:
        options = replace(options, kubeconfig=str(_kubeconfig(data)))
    return access_of(options)


def _kubeconfig(data: Path | None) -> Path:
    directory = data or data_directory()
    path = directory / KUBECONFIG
    if not path.exists():
        raise NoCluster(
            f"no server of planes was ever started with the data directory {directory}",
            hint="`kvestigate plane serve` starts one; --kubeconfig names the file of another",
        )
    return path
