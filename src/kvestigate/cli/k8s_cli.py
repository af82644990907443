"""The groups of `k8s-cli`: those of `kvestigate`, with examples that name this program."""

from __future__ import annotations

from kvestigate.cli.auth import auth as kvestigate_auth
from kvestigate.cli.jobs import jobs as kvestigate_jobs
from kvestigate.cli.jobs import renamed
from kvestigate.cli.volumes import volumes as kvestigate_volumes

auth = renamed(kvestigate_auth, "k8s-cli")
jobs = renamed(kvestigate_jobs, "k8s-cli")
volumes = renamed(kvestigate_volumes, "k8s-cli")
