"""What a volume refers to, and so a node that mounts it has to read."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.plane.access.authz.references import volume_secrets

CLAIM = {"claimRef": {"namespace": "home", "name": "c"}}
HERE, AWAY = {"name": "s"}, {"name": "s", "namespace": "away"}


@pytest.mark.parametrize(
    ("source", "secrets"),
    [
        ({"hostPath": {"path": "/x"}}, []),
        ({"azureFile": {"secretName": "s"}}, [("home", "s")]),
        ({"azureFile": {"secretName": "s", "secretNamespace": "away"}}, [("away", "s")]),
        ({"cephfs": {"secretRef": HERE}}, [("home", "s")]),
        ({"rbd": {"secretRef": AWAY}}, [("away", "s")]),
        ({"iscsi": {"secretRef": HERE}}, [("home", "s")]),
        ({"iscsi": {}}, []),
        # Which secrets these mean is never guessed.
        ({"cinder": {"secretRef": HERE}}, [("", "s")]),
        ({"storageos": {"secretRef": AWAY}}, [("away", "s")]),
        ({"csi": {"nodePublishSecretRef": AWAY}}, [("away", "s")]),
        ({"csi": {"nodeStageSecretRef": AWAY, "nodeExpandSecretRef": AWAY}}, [("away", "s")] * 2),
        # What only controllers use is not for nodes.
        ({"csi": {"controllerPublishSecretRef": AWAY, "controllerExpandSecretRef": AWAY}}, []),
    ],
)
def test_secrets_of_a_volume(source: dict[str, Any], secrets: list[tuple[str, str]]) -> None:
    assert list(volume_secrets({**CLAIM, **source})) == secrets
