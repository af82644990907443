"""Gives a server of planes its crews."""

from __future__ import annotations

from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.front.serving import Hiring
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.workforce.crew import CrewShape
from kvestigate.cluster.workforce.door import Door
from kvestigate.cluster.workforce.keeper import Crews


def hiring(*, controllers: bool, nodes: int) -> Hiring:
    """Crews for planes with a virtual clock; with `controllers`, for all others too."""

    def hire(api: ApiServer) -> Crews:
        def door(plane: str, user: str) -> Door:
            return Door(api, plane, User(user, (MASTERS, AUTHENTICATED)))

        return Crews(api.planes, door, CrewShape(nodes=nodes), on_wall_clock=controllers)

    return hire
