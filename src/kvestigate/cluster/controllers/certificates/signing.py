"""CertificateSigningRequests: approve those of kubelets, sign approved ones, remove old ones."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from kvestigate.client.api import PatchType
from kvestigate.cluster.controllers import conditions
from kvestigate.cluster.controllers.certificates import requests
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import SIGNING_REQUESTS
from kvestigate.cluster.controllers.objects import DatedCondition, SigningRequest
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.cluster.controllers.times import stamp
from kvestigate.kube import builtins

if TYPE_CHECKING:
    from kvestigate.http.certificates import CertificateAuthority

Authorities = Callable[[str], "CertificateAuthority"]
"""The CA behind a signer's name."""

_PERMISSIONS = {
    "selfnodeclient": "Auto approving self kubelet client certificate after SubjectAccessReview.",
    "nodeclient": "Auto approving kubelet client certificate after SubjectAccessReview.",
}
"""The subresource that a kubelet must be allowed to create, and what the approval then says."""


class SigningController(Reconciler[SigningRequest]):
    """Made with its authorities: `partial(SigningController, authorities)`."""

    def __init__(self, authorities: Authorities, context: Context) -> None:
        super().__init__(context, SIGNING_REQUESTS)
        self._authorities = authorities

    async def _reconcile(self, request: SigningRequest) -> float | None:
        signer, status = request.spec.signer_name, request.status
        if signer not in requests.SIGNERS or status.certificate:
            return None
        if not conditions.is_true(status.conditions, "Approved"):
            return None
        if any(conditions.is_true(status.conditions, kind) for kind in ("Denied", "Failed")):
            return None
        csr = requests.parsed(request.spec)
        if csr is None:
            return None
        usages = request.spec.usages
        if problem := requests.problem(signer, requests.subject_of(csr), usages):
            await self._fail(request, problem)
            return None
        authority = self._authorities(signer)
        now = datetime.fromtimestamp(self._context.now(), UTC)
        begin, end = requests.validity(request.spec.expiration_seconds, now, authority.expires)
        extensions = requests.extensions(csr, usages)
        certificate = authority.certify(csr, extensions, begin=begin, end=end)
        signed = msgspec.structs.replace(status, certificate=b64encode(certificate).decode())
        await self._put_status(request, signed)
        return None

    async def _fail(self, request: SigningRequest, problem: str) -> None:
        at = stamp(self._context.now())
        failed = DatedCondition("Failed", "True", "SignerValidationFailure", problem, at, at)
        every = conditions.put(request.status.conditions, failed)
        await self._put_status(request, msgspec.structs.replace(request.status, conditions=every))


class ApprovingController(Reconciler[SigningRequest]):
    """Approves the client certificates of kubelets, if their makers may have such."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, SIGNING_REQUESTS)

    async def _reconcile(self, request: SigningRequest) -> float | None:
        spec, status = request.spec, request.status
        if spec.signer_name != requests.KUBELET_CLIENT or status.certificate or status.conditions:
            return None
        csr = requests.parsed(spec)
        if csr is None:
            return None
        subject = requests.subject_of(csr)
        if requests.problem(spec.signer_name, subject, spec.usages):
            return None
        for subresource, message in _PERMISSIONS.items():
            if subresource == "selfnodeclient" and subject.common_name != spec.username:
                continue
            if await self._may(request, subresource):
                await self._approve(request, message)
                return None
        return None

    async def _may(self, request: SigningRequest, subresource: str) -> bool:
        spec = request.spec
        attributes = {
            "group": "certificates.k8s.io",
            "resource": "certificatesigningrequests",
            "subresource": subresource,
            "verb": "create",
            "version": "*",
        }
        who = {"user": spec.username, "uid": spec.uid, "groups": spec.groups, "extra": spec.extra}
        review: dict[str, Any] = {"spec": {**who, "resourceAttributes": attributes}}
        answer = await self._context.api.create(
            builtins.resource("subjectaccessreviews"), msgspec.to_builtins(review)
        )
        return bool(answer["status"].get("allowed"))

    async def _approve(self, request: SigningRequest, message: str) -> None:
        approved = {"type": "Approved", "status": "True", "reason": "AutoApproved"}
        patch = {"status": {"conditions": [{**approved, "message": message}]}}
        await self._context.patch(
            SIGNING_REQUESTS, request, patch, type=PatchType.MERGE, subresource="approval"
        )


class CleaningController(Reconciler[SigningRequest]):
    """Removes requests that nobody needs any more."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, SIGNING_REQUESTS)

    async def _reconcile(self, request: SigningRequest) -> float | None:
        until = requests.keeps_until(request)
        if until is None:
            return None
        left = until.timestamp() - self._context.now()
        if left > 0:
            return left
        await self._context.delete(SIGNING_REQUESTS, request)
        return None
