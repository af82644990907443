"""The GPUs of nodes, and who has them: host, kubelet and Kubernetes asked together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.errors import Forbidden, KvestigateError
from kvestigate.kube.requests import requests_of
from kvestigate.kube.views.pods import Pod
from kvestigate.node_access.remote import Remote
from kvestigate.snapshot.exporters import GpuExporters
from kvestigate.workspace import gpus
from kvestigate.workspace.fence import FIRST_USER
from kvestigate.workspace.gpus import Claims, Gpu, Reading
from kvestigate.workspace.host import ask_each, attempt, complaint, looking

_KUBELET = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
_PART = "==kvestigate=="
_NO_DRIVER = 70
_ENDED = ("Succeeded", "Failed")

# What an agent's process says of itself counts for nothing.
_SCRIPT = f"""\
command -v nvidia-smi >/dev/null || {{ echo "there is no nvidia-smi" >&2; exit {_NO_DRIVER}; }}
nvidia-smi --query-gpu={gpus.GPU_FIELDS} --format=csv,noheader,nounits
echo {_PART}
nvidia-smi --query-compute-apps={gpus.APP_FIELDS} --format=csv,noheader,nounits
echo {_PART}
for each in $(grep -lz '^{gpus.GIVEN}=GPU-' /proc/[0-9]*/environ 2>/dev/null); do
  user=$(sed -n 's/^Uid:[[:space:]]*\\([0-9]*\\).*/\\1/p' "${{each%environ}}status" 2>/dev/null)
  [ "${{user:-0}}" -lt {FIRST_USER} ] || continue
  grep -zoH '^{gpus.GIVEN}=GPU-.*' "$each" 2>/dev/null | tr '\\0' '\\n'
done
echo {_PART}
cat {_KUBELET} 2>/dev/null || :
"""


@dataclass(frozen=True, slots=True)
class Told:
    """What a host says of its GPUs."""

    readings: tuple[Reading, ...] = ()
    pids: Mapping[str, int] | None = None
    given: Mapping[str, int] | None = None
    checkpoint: str = ""
    """The kubelet's record of devices; empty where there is none."""


async def ask(host: Remote) -> Told:
    """Ask a host for its GPUs; nothing from one that has no driver."""
    done = await attempt(looking(host), _SCRIPT)
    if done.exit_code == _NO_DRIVER:
        return Told()
    if done.exit_code:
        said = done.stdout.decode("utf-8", "replace").strip().splitlines()
        why = complaint(done) if done.stderr else (said[-1] if said else "nvidia-smi failed")
        raise KvestigateError(f"{host.name}: {why}")
    readings, apps, given, record = done.stdout.decode("utf-8", "replace").split(f"{_PART}\n")
    return Told(
        gpus.parse_readings(readings), gpus.parse_processes(apps), gpus.parse_given(given), record
    )


async def gpus_of(
    api: Api, hosts: Mapping[str, Remote], claimed: Mapping[str, Mapping[str, str]]
) -> dict[str, tuple[Gpu, ...] | KvestigateError]:
    """The GPUs of each node, or why they are not known.

    `claimed` has by node, and by the GPU's UUID, the workspaces that have one.
    """
    answers = await ask_each(hosts, ask)
    pods = await _pods(api, tuple(hosts))
    users = await _users(api, answers, pods)
    found: dict[str, tuple[Gpu, ...] | KvestigateError] = {}
    for node, answer in answers.items():
        if isinstance(answer, KvestigateError):
            found[node] = answer
            continue
        here = [pod for pod in pods if pod.spec.node_name == node]
        claims = Claims(
            workspaces=claimed.get(node, {}),
            pods=users | gpus.parse_checkpoint(answer.checkpoint, _names(here)),
            pids=answer.pids or {},
            given=answer.given or {},
            requested=_requested(here),
        )
        found[node] = gpus.judge(answer.readings, claims)
    return found


async def _pods(api: Api, nodes: tuple[str, ...]) -> list[Pod]:
    fields = f"spec.nodeName={nodes[0]}" if len(nodes) == 1 else ""
    return [
        pod
        async for page in api.pages(PODS, Selection(None, fields=fields), type=Pod)
        for pod in page.items
        if pod.status.phase not in _ENDED
    ]


async def _users(
    api: Api, answers: Mapping[str, Told | KvestigateError], pods: Iterable[Pod]
) -> dict[str, str]:
    """UUID -> namespace/pod from the exporters, where a kubelet's record is not to be had."""
    silent = {node for node, it in answers.items() if isinstance(it, Told) and not it.checkpoint}
    if not _requested(pod for pod in pods if pod.spec.node_name in silent):
        return {}
    try:
        readings = (await GpuExporters().read(api, "", None)).items
    except Forbidden:
        return {}
    return {it.uuid: f"{it.namespace}/{it.pod}" for it in readings if it.uuid and it.pod}


def _names(pods: Iterable[Pod]) -> dict[str, str]:
    return {it.metadata.uid: f"{it.metadata.namespace}/{it.metadata.name}" for it in pods}


def _requested(pods: Iterable[Pod]) -> int:
    return sum(requests_of(pod.spec).get(gpus.RESOURCE, 0) for pod in pods)
