"""Every state of the bank is told with its cause, and nothing is said of what is healthy.

Written from what operators meet, without looking at the rules.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kvestigate.client.access import resolve
from kvestigate.client.choice import AccessOptions
from kvestigate.client.connect import connect
from kvestigate.health.registry import RULES, findings
from tests.health.cluster_of import NOW, Object, cluster_of
from tests.health.planting import STATES, alarms, as_listed, cases, is_told
from tests.health.states_on_server import NODES, STORAGE_CLASS, plant_all
from tests.health.test_bank import seen
from tests.upstream.cluster import UpstreamCluster

BANK = list(cases(STATES, now=NOW))
TOPICS = sorted({case.topic for case in BANK})


ADMIN: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "cluster-admin"},
    "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
}


@pytest.mark.parametrize("topic", TOPICS)
def test_every_state_is_told_with_its_cause(topic: str) -> None:
    missed, said = [], {}
    for case in BANK:
        if case.topic != topic:
            continue
        snapshot = cluster_of([*NODES, STORAGE_CLASS, ADMIN, *as_listed(case)])
        if not case.healthy and not is_told(case, findings(snapshot, RULES)):
            missed.append(case.name)
        if case.healthy and (lines := alarms(case, findings(snapshot))):
            said[case.name] = lines
    assert not missed
    assert not said


@pytest.mark.real
@pytest.mark.timeout(240)
async def test_every_state_is_told_on_a_real_api_server(
    kubernetes: UpstreamCluster, tmp_path: Path
) -> None:
    """Without controllers and kubelets: what is planted stays as it is."""
    bank = [case for case in cases(STATES, now=datetime.now(UTC)) if not case.alone]
    environ = {"KUBECONFIG": str(kubernetes.admin_kubeconfig()), "PATH": "/usr/bin:/bin"}
    async with connect(resolve(AccessOptions(), environ, None)) as api:
        await plant_all(api, bank)
        snapshot = await seen(api)
    everything, by_default = findings(snapshot, RULES), findings(snapshot)
    missed = [case.name for case in bank if not case.healthy and not is_told(case, everything)]
    said = {case.name: alarms(case, by_default) for case in bank if case.healthy}
    assert not missed
    assert not {name: lines for name, lines in said.items() if lines}
