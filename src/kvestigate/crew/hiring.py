"""Gives a server of planes its crews."""

from __future__ import annotations

from kvestigate.crew.crew import CrewShape
from kvestigate.crew.door import Door
from kvestigate.crew.keeper import Crews
from kvestigate.plane.authn.user import AUTHENTICATED, MASTERS, User
from kvestigate.plane.server import ApiServer
from kvestigate.plane.serving import Hiring


def hiring(*, controllers: bool, nodes: int) -> Hiring:
    """Crews for planes with a virtual clock; with `controllers`, for all others too."""

    def hire(api: ApiServer) -> Crews:
        def door(plane: str, user: str) -> Door:
            return Door(api, plane, User(user, (MASTERS, AUTHENTICATED)))

        return Crews(api.planes, door, CrewShape(nodes=nodes), on_wall_clock=controllers)

    return hire
