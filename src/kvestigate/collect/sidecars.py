"""Which containers serve the others: by how they start, by name, by image. Pure.

Native sidecars are certain. For the rest there is a list of what meshes, log shippers and
proxies inject, to which a user adds: a name, or a part of an image with a slash in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvestigate.kube.views.pods import Container, PodSpec

NAMES = frozenset(
    (
        "aws-otel-collector",
        "cloud-sql-proxy",
        "cloudsql-proxy",
        "consul-dataplane",
        "daprd",
        "datadog-agent",
        "envoy",
        "envoy-sidecar",
        "filebeat",
        "fluent-bit",
        "fluentbit",
        "fluentd",
        "gke-gcsfuse-sidecar",
        "istio-proxy",
        "jaeger-agent",
        "kuma-sidecar",
        "kube-rbac-proxy",
        "linkerd-proxy",
        "log-agent",
        "logstash",
        "oauth2-proxy",
        "opentelemetry-collector",
        "osm-proxy",
        "otc-container",
        "otel-collector",
        "pgbouncer",
        "promtail",
        "queue-proxy",
        "vault-agent",
        "vector",
    )
)

IMAGES = (
    "appmesh/aws-appmesh-envoy",
    "aws-observability/aws-otel-collector",
    "bitnami/oauth2-proxy",
    "cloud-sql-connectors/cloud-sql-proxy",
    "cloudsql-docker/gce-proxy",
    "daprio/daprd",
    "elastic/filebeat",
    "beats/filebeat",
    "envoyproxy/envoy",
    "fluent/fluent-bit",
    "fluent/fluentd",
    "grafana/promtail",
    "hashicorp/consul-dataplane",
    "istio/proxyv2",
    "jaegertracing/jaeger-agent",
    "kumahq/kuma-dp",
    "linkerd/proxy",
    "oauth2-proxy/oauth2-proxy",
    "otel/opentelemetry-collector",
    "timberio/vector",
)


@dataclass(frozen=True, slots=True)
class Sidecars:
    """What counts as a sidecar."""

    names: frozenset[str] = NAMES
    images: tuple[str, ...] = IMAGES

    def count(self, spec: PodSpec) -> int:
        native = sum(is_native(container) for container in spec.init_containers)
        if len(spec.containers) == 1:
            # A pod of nothing but a proxy is a proxy: it serves nobody beside it.
            return native
        return native + sum(self._known(container) for container in spec.containers)

    def _known(self, container: Container) -> bool:
        return container.name in self.names or any(
            f"/{image}" in f"/{container.image}" for image in self.images
        )


KNOWN = Sidecars()


def is_native(container: Container) -> bool:
    return container.restart_policy == "Always"


def with_more(patterns: Iterable[str]) -> Sidecars:
    """The known ones and these: container names, or parts of images where there is a slash."""
    given = tuple(patterns)
    return Sidecars(
        names=NAMES | {pattern for pattern in given if "/" not in pattern},
        images=(*IMAGES, *(pattern for pattern in given if "/" in pattern)),
    )
