"""etcd, kube-apiserver and, on demand, the controllers and the scheduler of one cluster."""

from __future__ import annotations

import base64
import csv
import datetime
import ssl
import tempfile
from pathlib import Path
from typing import Any

import yaml

from kvestigate.http.certificates import CertificateAuthority, KeyPair
from tests.upstream.binaries import Binaries
from tests.upstream.judge import Judge
from tests.upstream.processes import PortTaken, Process, free_ports, wait_until

ADMIN_TOKEN = "token-of-the-admin"
READER_TOKEN = "token-of-the-reader"
SERVER_NAME = "kubernetes.default.svc"
"""In the server's certificate beside 127.0.0.1: for `tls-server-name`."""
_ATTEMPTS = 3
_FAREWELL = 5.0
"""Seconds. Without watches an API server ends in one; it would wait a minute for those to end."""


class UpstreamCluster:
    """`with UpstreamCluster(binaries, directory) as cluster:`

    Authorizers, admission and token handling are those of a default cluster; everything that
    it writes, logs included, is in `directory`. Only if it is `durable` does etcd wait for the
    disk: most clusters are thrown away, and the disk is shared.
    """

    def __init__(self, binaries: Binaries, directory: Path, *, durable: bool = False) -> None:
        self.binaries = binaries
        self.directory = directory
        self._durable = durable
        self._authority = CertificateAuthority.create("kubernetes", now=_now())
        self._ca, self._ca_key = self._write(self._authority.pair, "ca")
        # Service accounts only need some pair of keys, and a certificate holds a public one.
        signer = self.client_certificate("service-accounts")
        self._verifying_key, self._signing_key = self._write(signer, "service-accounts")
        self._servers: dict[str, Process] = {}
        self.port = 0
        self.etcd_port = 0
        self._write_tokens()

    # -- life ----------------------------------------------------------------------------

    def __enter__(self) -> UpstreamCluster:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        names = ["localhost", SERVER_NAME, "127.0.0.1"]
        self._write(self._authority.issue_server("kube-apiserver", names, now=_now()), "serving")
        for attempt in range(_ATTEMPTS):
            self.port, self.etcd_port, peer_port = free_ports(3)
            try:
                self._start_etcd(peer_port)
                self._start_apiserver()
            except PortTaken:
                self.stop()
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def stop(self) -> None:
        """The last started first, so that nobody loses what it depends on."""
        for server in reversed(self._servers.values()):
            server.stop()
        self._servers.clear()

    def restart_apiserver(self, *, kill: bool = False) -> None:
        """On the same port; `kill` ends it without a farewell to its clients."""
        server = self._servers["kube-apiserver"]
        if kill:
            server.kill()
        else:
            server.stop(grace=_FAREWELL)
        self._start_apiserver()

    def start_controllers(self) -> None:
        """kube-controller-manager; does nothing if it runs."""
        kubeconfig = self.kubeconfig("system:kube-controller-manager")
        self._start_component(
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--service-account-private-key-file={self._signing_key}",
            f"--root-ca-file={self._ca}",
            f"--cluster-signing-cert-file={self._ca}",
            f"--cluster-signing-key-file={self._ca_key}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
        )

    def start_scheduler(self) -> None:
        """kube-scheduler; does nothing if it runs."""
        kubeconfig = self.kubeconfig("system:kube-scheduler")
        self._start_component(
            "kube-scheduler", f"--kubeconfig={kubeconfig}", "--leader-elect=false"
        )

    def pids(self) -> tuple[int, ...]:
        """Of all servers that run."""
        return tuple(server.pid for server in self._servers.values())

    # -- access --------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_file(self) -> Path:
        return self._ca

    def admin_kubeconfig(self) -> Path:
        return self.kubeconfig("admin", ("system:masters",))

    def client_certificate(self, user: str, groups: tuple[str, ...] = ()) -> KeyPair:
        return self._authority.issue_client(user, groups, now=_now())

    def judge(self, user: str = "admin", groups: tuple[str, ...] = ("system:masters",)) -> Judge:
        return Judge(self.port, self._client_context(user, groups))

    def etcd(self) -> Judge:
        """etcd's own JSON gateway."""
        return Judge(self.etcd_port, None)

    def forget(self, collection: str) -> None:
        """Make the servers forget all history up to now, as the hourly-old is in daily life.

        Returns when lists of the collection at this path no longer come from the API server's
        memory either, which may take a quarter of a minute.
        """
        with self.judge() as judge:
            version = judge.get(f"{collection}?limit=1")["metadata"]["resourceVersion"]
            self._compact(judge)
            exactly = f"{collection}?resourceVersion={version}&resourceVersionMatch=Exact&limit=1"
            wait_until(lambda: not judge.answers(exactly), "the API server still remembers")

    def forget_and_restart(self, *, kill: bool = False) -> None:
        """The same for everything, watches too: an API server that starts remembers nothing."""
        with self.judge() as judge:
            self._compact(judge)
        self.restart_apiserver(kill=kill)

    def _compact(self, judge: Judge) -> None:
        """etcd, with the note by which API servers learn of it."""
        # Nothing older than the latest is kept, so there must be something later.
        marker = {"metadata": {"generateName": "marker-"}}
        judge.post("/api/v1/namespaces/default/configmaps", marker)
        with self.etcd() as etcd:
            revision = etcd.post("/v3/maintenance/status", {})["header"]["revision"]
            etcd.post("/v3/kv/compaction", {"revision": revision, "physical": True})
            note = {"key": _base64(b"compact_rev_key"), "value": _base64(revision.encode())}
            etcd.post("/v3/kv/put", note)

    def kubeconfig(
        self,
        user: str,
        groups: tuple[str, ...] = (),
        *,
        credentials: dict[str, Any] | None = None,
        connection: dict[str, Any] | None = None,
        name: str | None = None,
    ) -> Path:
        """A kubeconfig file: a certificate of `user`, or whatever `credentials` say.

        `connection` replaces the keys of the cluster entry that follow `server`.
        """
        if credentials is None:
            pair = self.client_certificate(user, groups)
            credentials = {
                "client-certificate-data": _base64(pair.certificate),
                "client-key-data": _base64(pair.key),
            }
        if connection is None:
            connection = {"certificate-authority": str(self._ca)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "upstream",
            "contexts": [{"name": "upstream", "context": {"cluster": "upstream", "user": user}}],
            "clusters": [{"name": "upstream", "cluster": {"server": self.url} | connection}],
            "users": [{"name": user, "user": credentials}],
        }
        path = self.directory / f"{(name or user).replace(':', '-')}.kubeconfig"
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path

    # -- servers -------------------------------------------------------------------------

    def _start_etcd(self, peer_port: int) -> None:
        client, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{peer_port}"
        self._run(
            "etcd",
            [
                f"--data-dir={self.directory / 'etcd'}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--quota-backend-bytes=8589934592",
                *([] if self._durable else ["--unsafe-no-fsync"]),
            ],
            self.etcd(),
            "/health",
        )

    def _start_apiserver(self) -> None:
        self._run(
            "kube-apiserver",
            [
                f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                "--endpoint-reconciler-type=none",  # refuses to publish a loopback address
                f"--secure-port={self.port}",
                "--service-cluster-ip-range=10.96.0.0/16",
                f"--cert-dir={self.directory}",
                f"--tls-cert-file={self.directory / 'serving.crt'}",
                f"--tls-private-key-file={self.directory / 'serving.key'}",
                f"--client-ca-file={self._ca}",
                f"--token-auth-file={self.directory / 'tokens.csv'}",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                f"--service-account-key-file={self._verifying_key}",
                f"--service-account-signing-key-file={self._signing_key}",
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                "--allow-privileged=true",
                "--event-ttl=1h",
            ],
            self.judge(),
            "/readyz",
            "/api/v1/namespaces/default",  # the last of those that it makes after it is ready
        )

    def _start_component(self, name: str, *flags: str) -> None:
        if name in self._servers:
            return
        for attempt in range(_ATTEMPTS):
            (port,) = free_ports(1)
            listen = ["--bind-address=127.0.0.1", f"--secure-port={port}"]
            listen.append(f"--cert-dir={self.directory / name}")
            probe = Judge(port, ssl._create_unverified_context())
            try:
                self._run(name, [*flags, *listen], probe, "/healthz")
            except PortTaken:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def _run(self, name: str, flags: list[str], probe: Judge, *ready: str) -> None:
        """Returns when all paths of `ready` are answered."""
        log = self.directory / f"{name}.log"
        server = Process(name, [self.binaries.path(name), *flags], log)
        with probe:
            server.start(lambda: all(map(probe.answers, ready)))
        self._servers[name] = server

    def _client_context(self, user: str, groups: tuple[str, ...]) -> ssl.SSLContext:
        pair = self.client_certificate(user, groups)
        context = ssl.create_default_context(cafile=str(self._ca))
        with tempfile.NamedTemporaryFile(dir=self.directory) as both:
            both.write(pair.certificate + pair.key)
            both.flush()
            context.load_cert_chain(both.name)
        return context

    def _write(self, pair: KeyPair, name: str) -> tuple[Path, Path]:
        """`(name.crt, name.key)`"""
        certificate, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        key.chmod(0o600)
        return certificate, key

    def _write_tokens(self) -> None:
        with (self.directory / "tokens.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([ADMIN_TOKEN, "token-admin", "uid-of-the-admin", "system:masters"])
            rows.writerow([READER_TOKEN, "token-reader", "uid-of-the-reader", "readers,watchers"])


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
