"""Reads all ConfigMaps of a namespace, in a process of its own so that its peak is its own.

`python -m tests.real.reader KUBECONFIG NAMESPACE` prints how many there were, the most that
were in a page, and by how many MiB the process grew.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

from kvestigate.client.call import Selection
from tests.real.session import CONFIG_MAPS, ConfigMap, connected


async def read(kubeconfig: Path, namespace: str) -> tuple[int, int, int]:
    before = _peak()
    count = longest = 0
    async with connected(kubeconfig) as api:
        async for page in api.pages(CONFIG_MAPS, Selection(namespace), type=ConfigMap):
            count += len(page.items)
            longest = max(longest, len(page.items))
    return count, longest, _peak() - before


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    print(*asyncio.run(read(Path(sys.argv[1]), sys.argv[2])))
