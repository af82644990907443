"""Gives a server of planes its crews."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

from kvestigate.client.inprocess import InProcessTransport
from kvestigate.crew.crew import CONTROLLER_MANAGER, KUBELETS, SCHEDULER, CrewShape
from kvestigate.crew.keeper import Crews
from kvestigate.plane import tenancy
from kvestigate.plane.authn.user import MASTERS
from kvestigate.plane.server import ApiServer
from kvestigate.plane.serving import Hiring
from kvestigate.wire.certificates import CertificateAuthority
from kvestigate.wire.message import Peer


def hiring(*, controllers: bool, nodes: int) -> Hiring:
    """Crews for planes with a virtual clock; with `controllers`, for all others too."""

    def hire(api: ApiServer, authority: CertificateAuthority) -> Crews:
        now = datetime.now(UTC)
        peers = {}
        for user in (CONTROLLER_MANAGER, SCHEDULER, KUBELETS):
            pair = authority.issue_client(user, [MASTERS], now=now)
            peers[user] = Peer(certificate=ssl.PEM_cert_to_DER_cert(pair.certificate.decode()))

        def door(plane: str, user: str) -> InProcessTransport:
            return InProcessTransport(
                api.handle,
                base_path=tenancy.root_path(plane),
                headers=[("user-agent", user.removeprefix("system:"))],
                peer=peers[user],
            )

        return Crews(api.planes, door, CrewShape(nodes=nodes), on_wall_clock=controllers)

    return hire
