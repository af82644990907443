"""The certificate authority of the API server, in every namespace as a ConfigMap."""

from __future__ import annotations

from kvestigate import errors
from kvestigate.client.cache import Key
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import NAMESPACES, ROOT_CERTIFICATES
from kvestigate.cluster.controllers.namespaces.serviceaccount import namespace_key

NAME = "kube-root-ca.crt"
_ENTRY = "ca.crt"
_ABOUT = "kubernetes.io/description"
_DESCRIPTION = "Holds the certificates by which pods recognise the API server of this cluster."


class RootCertificateController:
    """Made with the PEM that clients should trust: `partial(RootCertificateController, pem)`."""

    def __init__(self, certificate: str, context: Context) -> None:
        self._certificate = certificate
        self._context = context
        self._namespaces = context.watch(NAMESPACES, owners.itself)
        self._maps = context.watch(ROOT_CERTIFICATES, namespace_key(NAME))

    async def reconcile(self, key: Key) -> float | None:
        namespace = self._namespaces.get(key)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return None
        present = self._maps.get(Key(key.name, NAME))
        data = {_ENTRY: self._certificate}
        if present is None:
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": NAME,
                    "namespace": key.name,
                    "annotations": {_ABOUT: _DESCRIPTION},
                },
                "data": data,
            }
            try:
                await self._context.create(ROOT_CERTIFICATES, body)
            except errors.AlreadyExists:
                pass
        elif present.data.certificate != self._certificate:
            await self._context.patch(ROOT_CERTIFICATES, present, {"data": data})
        return None
