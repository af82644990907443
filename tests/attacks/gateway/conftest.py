"""A gateway in front of an API server in process, as agents and strangers reach it."""

from tests.cybernet.conftest import access, document, front

__all__ = ["access", "document", "front"]
