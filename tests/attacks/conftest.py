"""A plane in process, as its tenants reach it."""

from tests.cluster.plane.conftest import Api, api

__all__ = ["Api", "api"]
