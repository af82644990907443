"""Planes for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.planeops.manage import Plane, PlaneList
from kvestigate.render.blocks import Block, Column, Facts, Table


def planes_blocks(planes: PlaneList) -> Sequence[Block]:
    columns = [Column("ID"), Column("PATH")]
    rows = [(plane.id, plane.path or "/") for plane in planes.items]
    return [Table(columns, rows, empty="no planes")]


def plane_blocks(plane: Plane) -> Sequence[Block]:
    return [Facts([("plane", plane.id), ("path", plane.path or "/")])]
