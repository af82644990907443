"""The commands of `k8s-cli`: those of `kvestigate`, with examples that name this program."""

from __future__ import annotations

from kvestigate.cli.auth import auth as kvestigate_auth
from kvestigate.cli.job_runs import jobs as kvestigate_jobs
from kvestigate.cli.jobs import serve as kvestigate_serve
from kvestigate.cli.renaming import renamed, renamed_group
from kvestigate.cli.volumes import volumes as kvestigate_volumes

auth = renamed_group(kvestigate_auth, "kvestigate", "k8s-cli")
jobs = renamed_group(kvestigate_jobs, "kvestigate", "k8s-cli")
volumes = renamed_group(kvestigate_volumes, "kvestigate", "k8s-cli")
serve = renamed(kvestigate_serve, "kvestigate jobs", "k8s-cli")
