"""What every namespace is given: the default service account and the root certificate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic

from kvestigate import errors
from kvestigate.client.cache import Change, Key, V
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import (
    NAMESPACES,
    ROOT_CERTIFICATES,
    SERVICE_ACCOUNTS,
    Kind,
)
from kvestigate.cluster.controllers.objects import RootCertificate
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.kube.views.core import Namespace
from kvestigate.kube.views.meta import PartialObject


class _InEveryNamespace(Reconciler[Namespace], Generic[V]):
    """Keeps one object in every namespace."""

    def __init__(self, context: Context, kind: Kind[V], name: str, **fields: Any) -> None:
        """`fields` are the object's, beside its kind, name and namespace."""
        super().__init__(context, NAMESPACES)
        self._kept = kind
        self._name = name
        self._fields = fields
        self._present = context.watch(kind, self._namespace_of)

    def _namespace_of(self, change: Change[V]) -> Iterable[Key]:
        return (Key("", change.key.namespace),) if change.key.name == self._name else ()

    async def _reconcile(self, namespace: Namespace) -> float | None:
        if namespace.metadata.deletion_timestamp is not None:
            return None
        name = namespace.metadata.name
        present = self._present.get(Key(name, self._name))
        if present is None:
            await self._create(name)
        elif change := self._difference(present):
            await self._context.patch(self._kept, present, change)
        return None

    async def _create(self, namespace: str) -> None:
        resource = self._kept.resource
        metadata = {"name": self._name, "namespace": namespace, **self._fields.get("metadata", {})}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **self._fields}
        try:
            await self._context.create(self._kept, body | {"metadata": metadata})
        except errors.AlreadyExists:
            pass

    def _difference(self, present: V) -> dict[str, Any]:
        """The patch that brings the object to what it should be; empty if it is."""
        return {}


class ServiceAccountController(_InEveryNamespace[PartialObject]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, SERVICE_ACCOUNTS, "default")


class RootCertificateController(_InEveryNamespace[RootCertificate]):
    """Made with the PEM that clients should trust: `partial(RootCertificateController, pem)`."""

    def __init__(self, certificate: str, context: Context) -> None:
        self._certificate = certificate
        self._data = {"ca.crt": certificate}
        about = "Holds the certificates by which pods recognise the API server of this cluster."
        super().__init__(
            context,
            ROOT_CERTIFICATES,
            "kube-root-ca.crt",
            metadata={"annotations": {"kubernetes.io/description": about}},
            data=self._data,
        )

    def _difference(self, present: RootCertificate) -> dict[str, Any]:
        return {} if present.data.certificate == self._certificate else {"data": self._data}
