"""`kvestigate namespaces`."""

from __future__ import annotations

from kvestigate.cli.cluster import access_of
from kvestigate.cli.group import command
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.progress import counting


@command("namespaces", examples=("kvestigate namespaces", "kvestigate namespaces -o json"))
async def namespaces(options: GlobalOptions) -> None:
    """List namespaces with their number of pods."""
    from kvestigate.inspection.lists import (
        NamespacesOptions,
        list_namespaces,
        namespaces_blocks,
    )

    with counting() as progress:
        result = await list_namespaces(access_of(options), NamespacesOptions(), progress)
    emit(options, result, namespaces_blocks)
