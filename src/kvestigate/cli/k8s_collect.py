"""The commands of `k8s-collect`: those of `kvestigate collect`, under that program's name."""

from __future__ import annotations

from kvestigate.cli import collect
from kvestigate.cli.renaming import renamed

watch = renamed(collect.watch, "kvestigate collect", "k8s-collect")
from_file = renamed(collect.from_file, "kvestigate collect", "k8s-collect")
