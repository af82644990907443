"""The two workflows that the launcher is specified by, as they are written there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.scene.staging import Scene

# Each waits for pods, and its nodes for each other's names.
pytestmark = [pytest.mark.workflow, pytest.mark.timeout(180)]

SUBMIT = """\
# 1. Login
k8s-cli auth login myuser

# 2. Create volume
k8s-cli volumes create data-vol 10Gi

# 3. Submit task using volume
cat > task.yaml <<EOF
name: training-job
num_nodes: 2
resources:
  cpus: "4"
  memory: "8Gi"
  accelerators: "1"
  image_id: "python:3.11"
volumes:
  /data: data-vol
envs:
  EPOCHS: "100"
setup: |
  pip install torch numpy
run: |
  python train.py --data /data --epochs $EPOCHS
EOF

k8s-cli jobs submit task.yaml
"""
LOOK = """\
# 4. Monitor task
k8s-cli jobs list
k8s-cli jobs status abc12345

# 5. View logs
k8s-cli jobs logs abc12345

# 6. Stop if needed
k8s-cli jobs stop abc12345
"""
CLEAN_UP = """\
# 7. Cleanup
k8s-cli volumes delete vol12345 --force
"""
DISTRIBUTED = r"""
name: distributed-training
num_nodes: 4
resources:
  cpus: "8"
  memory: "16Gi"
  accelerators: "2"
  image_id: "nvcr.io/nvidia/pytorch:23.10-py3"
envs:
  MASTER_ADDR: "master-service"
  MASTER_PORT: "29500"
setup: |
  pip install transformers datasets
run: |
  python -m torch.distributed.launch \
    --nproc_per_node=2 \
    --nnodes=$NUM_NODES \
    --node_rank=$NODE_RANK \
    --master_addr=$MASTER_ADDR \
    --master_port=$MASTER_PORT \
    train_distributed.py
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scene")


@pytest.fixture(scope="module")
def scene(home: Path) -> Iterator[Scene]:
    with Scene(home) as scene:
        scene.prepare()
        yield scene


def ids(text: str) -> list[str]:
    return re.findall(r"successfully with ID: (\w{8})$", text, re.MULTILINE)


def lines(text: str, node: int) -> list[str]:
    return re.findall(rf"^node-{node} \| (.*)$", text, re.MULTILINE)


def installed(*names: str) -> list[str]:
    return [f"Successfully installed {name}" for name in names]


def test_the_whole_life_of_a_task(scene: Scene) -> None:
    said = scene.run(SUBMIT)
    volume, task = ids(said)
    setup = installed("torch", "numpy")
    for rank in (0, 1):
        assert lines(said, rank) == [*setup, f"rank {rank}: from 0 to 100, 200 in all"]
    assert f"Task {task} completed" in said

    looked = scene.run(LOOK.replace("abc12345", task))
    for rank in (0, 1):
        assert lines(looked, rank) == [*setup, f"rank {rank}: from 0 to 100, 200 in all"]
    assert f"Task {task} stopped successfully" in looked

    # The volume has kept what the first run left on it.
    reading = "{run: cat /data/checkpoint-1, volumes: {/data: data-vol}}"
    assert "\n100\n" in scene.run(f"k8s-cli jobs submit - <<< '{reading}'") + "\n"
    assert "deleted successfully" in scene.run(CLEAN_UP.replace("vol12345", volume))


def test_distributed_training(scene: Scene, home: Path) -> None:
    (home / "distributed.yaml").write_text(DISTRIBUTED)
    scene.install_torch()  # as that image has it
    said = scene.run("k8s-cli auth login myuser; k8s-cli jobs submit distributed.yaml")
    for node in range(4):
        found = lines(said, node)
        assert found[:2] == installed("transformers", "datasets")
        ranks = range(node * 2, node * 2 + 2)
        assert sorted(found[2:]) == [f"rank {rank} of 8: 28" for rank in ranks]


GANG = """
num_nodes: 2
volumes: {/data: gang-vol}
run: |
  echo "rank $NODE_RANK of $(echo "$SKYPILOT_NODE_IPS" | wc -l)"
  [ -e /data/drained ] && exit 0
  sleep 100
"""
DRAIN = """
k8s-cli auth login myuser
k8s-cli volumes create gang-vol 1Gi --access-modes ReadWriteMany
k8s-cli jobs submit gang.yaml > gang.log 2>&1 &
until [ "$(grep -c 'rank . of 2' gang.log)" = 2 ]; do sleep 0.2; done
echo > drained && k8s-cli volumes cp drained gang-vol:/
kvestigate evict -n default -l node-idx=1 --delete-emptydir-data \\
    --apply --i-understand-this-disrupts-workloads
wait; cat gang.log
"""


def test_an_evicted_node_restarts_the_gang_while_the_log_is_followed(
    scene: Scene, home: Path
) -> None:
    (home / "gang.yaml").write_text(GANG)
    said = scene.run(DRAIN)
    [_, task] = ids(said)
    for node in (0, 1):
        assert lines(said, node).count(f"rank {node} of 2") == 2
    assert f"Task {task} completed" in said
    why = scene.run(f"k8s-cli jobs why {task}")
    # The pod says it; if that is gone already, the Job does.
    assert re.search(r"before: node-1: .*(EvictionByEvictionAPI|DisruptionTarget)", why)
