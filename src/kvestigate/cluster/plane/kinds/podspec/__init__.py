"""The pod spec, as pods and the templates of workloads share it: defaults and validation."""

from kvestigate.cluster.plane.kinds.podspec.defaults import default_pod_spec, default_pod_template
from kvestigate.cluster.plane.kinds.podspec.spec import validate_pod_template
from kvestigate.cluster.plane.kinds.podspec.warnings import warn_of_template

__all__ = [
    "default_pod_spec",
    "default_pod_template",
    "validate_pod_template",
    "warn_of_template",
]
