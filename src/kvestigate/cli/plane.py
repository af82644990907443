"""`kvestigate plane`: serve Kubernetes control planes, and look after those of a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvestigate.cli.command import command
from kvestigate.cli.group import group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.parameters import whole_number
from kvestigate.cli.plane_server import data_directory, data_option, server_kubeconfig
from kvestigate.errors import NoCluster, UsageError
from kvestigate.render.human import counted

if TYPE_CHECKING:
    from kvestigate.cluster.plane.front.serving import Listen, Serving


@group("plane")
def plane() -> None:
    """Serve complete Kubernetes control planes, thousands in one process."""


@command(
    "serve",
    into=plane,
    examples=(
        "kvestigate plane serve",
        "kvestigate plane serve --memory --listen 127.0.0.1:0",
        "kvestigate plane serve --data /srv/planes --listen 0.0.0.0:6443",
        "kvestigate plane serve --etcd http://10.0.0.1:2379,http://10.0.0.2:2379",
        "kvestigate plane serve --allow-egress 127.0.0.1:8443",
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
    "--allow-egress",
    metavar="CIDR[:PORT]",
    multiple=True,
    help="Let planes reach webhooks, nodes and endpoints at these addresses, which are otherwise "
    "refused: loopback, link-local and other addresses of this machine. Repeatable.",
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
    allow_egress: tuple[str, ...],
    controllers: bool,
    nodes: int,
) -> None:
    """Serve planes until SIGTERM or Ctrl-C.

    The root plane is served at /, every other plane at /clusters/ID/control-plane. A plane is
    created by the first request to it of a user who may create planes. The admin kubeconfig is
    written to the data directory.

    Without --controllers a plane is an API server only; you can run controllers of your own
    against it. Planes with a virtual clock always have controllers, which work while
    `plane step` moves the clock.
    """
    from kvestigate.cluster.plane.egress.addresses import Allowance
    from kvestigate.cluster.plane.front.serving import (
        Auth,
        EtcdOptions,
        ServeOptions,
        no_workers,
        run,
    )
    from kvestigate.cluster.scenarios.library import objects_of
    from kvestigate.cluster.workforce.registry import start_workers

    shared = None
    workers = start_workers(controllers=controllers, nodes=nodes)
    if etcd is None:
        _refuse_etcd_options(etcd_ca, etcd_cert, etcd_key)
    else:
        if controllers:
            raise UsageError(
                "--controllers cannot be used with --etcd: every server that shares the etcd "
                "would run controllers on the same planes",
                hint="leave out --controllers and run controllers of your own against the planes",
            )
        workers = no_workers
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
        workers=workers,
        scenarios=objects_of,
        allow_egress=tuple(map(Allowance.parse, allow_egress)),
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

    path = Path(options.kubeconfig) if options.kubeconfig else server_kubeconfig(data)
    try:
        server = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise NoCluster(f"{path} cannot be read: {error}") from error
    if not isinstance(server, dict):
        raise NoCluster(f"{path} is not a kubeconfig: it has no fields")
    click.echo(yaml.safe_dump(for_plane(server, id), sort_keys=False), nl=False)


@command(
    "kubelet-certificate",
    into=plane,
    examples=(
        "kvestigate plane kubelet-certificate alpha node-1 10.0.0.21 --out /etc/kubelet-pki",
    ),
)
@click.argument("id")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory for ca.crt, kubelet.crt and kubelet.key.",
)
@data_option
def kubelet_certificate(
    options: GlobalOptions, id: str, names: tuple[str, ...], out: Path, data: Path | None
) -> None:
    """Write the serving certificate of a kubelet in the plane ID.

    NAME is a host name or IP address of the node, as its Node object says it. The server believes
    only kubelets with such a certificate, and shows them a certificate of the same CA: start the
    kubelet with --client-ca-file ca.crt. Both are valid for the kubelets of this plane only.
    """
    from datetime import UTC, datetime

    from kvestigate.cluster.plane.egress.credentials import kubelet_authority
    from kvestigate.cluster.plane.front.data_directory import DataDirectory
    from kvestigate.files import private_directory, replace_file

    now = datetime.now(UTC)
    server = DataDirectory(server_kubeconfig(data).parent).authority(now)
    kubelets = kubelet_authority(server, id, now)
    pair = kubelets.issue_server(f"system:node:{names[0]}"[:64], names, now=now)
    try:
        private_directory(out)
        for name, content in (
            ("ca.crt", kubelets.pair.certificate),
            ("kubelet.crt", pair.certificate),
            ("kubelet.key", pair.key),
        ):
            replace_file(out / name, content, mode=0o600)
            click.echo(out / name)
    except OSError as error:
        raise UsageError(f"--out: {error.filename or out}: {error.strerror}") from error
