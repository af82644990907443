"""`kvestigate debug`: how we talk to the cluster."""

from kvestigate.cli.group import group


@group("debug")
def debug() -> None:
    """How are we talking to this cluster, and what is slow about it?"""
