"""A client that writes to one plane as fast as it can, in a process of its own.

python -m bench.noise KUBECONFIG PLANE
"""

from __future__ import annotations

import sys
from itertools import count

from kvestigate_client import PlaneClient

_MAPS = "/api/v1/namespaces/default/configmaps"


def main() -> None:
    kubeconfig, name = sys.argv[1:]
    with PlaneClient.from_kubeconfig(kubeconfig) as client:
        plane = client.plane(name)
        for number in count():
            obj = {"metadata": {"name": f"m-{number}"}, "data": {"text": "x" * 1000}}
            plane.request("POST", _MAPS, obj)
            if not number:
                print("writing", flush=True)


if __name__ == "__main__":
    main()
