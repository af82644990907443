"""The Python contenders of the list bench: `python -m bench.readers NAME KUBECONFIG`.

Each reads every pod into typed objects and prints what it found, so that all can be checked
to have read the same.
"""

from __future__ import annotations

import importlib
import sys


def main() -> None:
    name, kubeconfig = sys.argv[1:]
    pods, restarts, gpus = READERS[name](kubeconfig)
    print(f"{pods} pods, {restarts} restarts, {gpus} GPUs")


def official(kubeconfig: str, limit: int | None = None) -> tuple[int, int, int]:
    # By name, because its annotations make every field of every object optional.
    importlib.import_module("kubernetes.config").load_kube_config(kubeconfig)
    api = importlib.import_module("kubernetes.client").CoreV1Api()
    count = restarts = gpus = 0
    token = None
    while True:
        page = api.list_pod_for_all_namespaces(limit=limit, _continue=token)
        for pod in page.items:
            count += 1
            restarts += sum(status.restart_count for status in pod.status.container_statuses)
            for container in pod.spec.containers:
                gpus += int(container.resources.requests.get("nvidia.com/gpu", 0))
        token = page.metadata._continue
        if not token:
            return count, restarts, gpus


def official_paged(kubeconfig: str) -> tuple[int, int, int]:
    return official(kubeconfig, limit=500)


def official_all(kubeconfig: str) -> tuple[int, int, int]:
    """Nodes, Deployments and Services, too, and all of it at hand at the end."""
    importlib.import_module("kubernetes.config").load_kube_config(kubeconfig)
    client = importlib.import_module("kubernetes.client")
    core, apps = client.CoreV1Api(), client.AppsV1Api()
    kept = [
        core.list_node().items,
        apps.list_deployment_for_all_namespaces().items,
        core.list_service_for_all_namespaces().items,
    ]
    pods = core.list_pod_for_all_namespaces().items
    statuses = (status for pod in pods for status in pod.status.container_statuses or ())
    return len(pods), sum(status.restart_count for status in statuses), len(kept)


def kvestigate(kubeconfig: str) -> tuple[int, int, int]:
    import asyncio

    return asyncio.run(_kvestigate(kubeconfig))


async def _kvestigate(kubeconfig: str) -> tuple[int, int, int]:
    from kvestigate.client.access import AccessOptions, resolve
    from kvestigate.client.api import PODS
    from kvestigate.client.connect import connect
    from kvestigate.kube.views.pods import Pod

    count = restarts = gpus = 0
    async with connect(resolve(AccessOptions(kubeconfig=kubeconfig), {}, None)) as api:
        async for page in api.pages(PODS, type=Pod):
            for pod in page.items:
                count += 1
                restarts += sum(status.restart_count for status in pod.status.container_statuses)
                for container in pod.spec.containers:
                    gpus += int(container.resources.requests.get("nvidia.com/gpu", 0))
    return count, restarts, gpus


READERS = {
    "kvestigate": kvestigate,
    "official": official,
    "official-paged": official_paged,
    "official-all": official_all,
}

if __name__ == "__main__":
    main()
