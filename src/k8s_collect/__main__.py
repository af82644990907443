"""`python -m k8s_collect`: the command `k8s-collect`."""

from __future__ import annotations

from kvestigate.cli.main import k8s_collect

if __name__ == "__main__":
    k8s_collect()
