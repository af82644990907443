"""Random lives of a family of planes, against plain dicts.

Whatever is written, forked, checkpointed, deleted, trimmed and restarted in whatever order: each
plane has exactly the objects that were written to it, and nothing shows through.
"""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from kvestigate.cluster.plane.store.etcd.backend import EtcdBackend
from kvestigate.cluster.plane.store.history import Retention
from kvestigate.cluster.plane.store.interface import Backend
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.model import Mutation
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.sqlite.backend import SqliteBackend
from kvestigate.cluster.plane.store.state import PlaneState, assemble
from kvestigate.cluster.plane.store.store import Store
from tests.cluster.plane.store.conftest import Etcd
from tests.contracts.store import PODS, contents, exact, put, remove, revisions

pytestmark = pytest.mark.timeout(240)  # a failure is shrunk, and that takes its time

T = TypeVar("T")
NAMES = st.sampled_from("abcd")
RETENTION = Retention(changes=4)
"""So little that rows become garbage all the time."""

TEMPLATE = assemble([put("a", "template"), put("b", "template")])


class Model:
    """What a plane must hold."""

    def __init__(self, objects: dict[str, object], revision: int) -> None:
        self.objects = objects
        self.revision = revision
        self.checkpoints: dict[str, tuple[int, dict[str, object]]] = {}


class Family(RuleBasedStateMachine):
    planes: Bundle[str] = Bundle("planes")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.models: dict[str, Model] = {}
        self.serial = 0
        self.store = Store(self.backend(), RETENTION)
        self.run(self.store.__aenter__())

    def backend(self) -> Backend:
        return MemoryBackend()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    def plane(self, name: str) -> Plane:
        return self.run(self.store.plane(name))

    def fresh(self) -> str:
        self.serial += 1
        return f"plane-{self.serial}"

    @initialize(target=planes)
    def begin(self) -> str:
        return self.make(template=True)

    @rule(target=planes, template=st.booleans())
    def create(self, template: bool) -> str:
        return self.make(template)

    def make(self, template: bool) -> str:
        name = self.fresh()
        if template:
            self.run(self.store.create(name, TEMPLATE))
            self.models[name] = Model({"a": "template", "b": "template"}, 2)
        else:
            self.run(self.store.create(name))
            self.models[name] = Model({}, 0)
        return name

    @rule(plane=planes, names=st.lists(NAMES, min_size=1, max_size=6), removing=st.booleans())
    def write(self, plane: str, names: list[str], removing: bool) -> None:
        model, subject = self.models[plane], self.plane(plane)
        for name in names:
            item = subject.tip.get(PODS, "default", name)
            expect = 0 if item is None else item.revision
            self.serial += 1
            mutation: Mutation = put(name, self.serial, expect)
            if removing and item is not None:
                mutation = remove(name, expect)
                del model.objects[name]
            else:
                model.objects[name] = self.serial
            self.run(subject.write(mutation, actor=f"user-{self.serial}"))
            model.revision += 1

    @rule(target=planes, plane=planes, count=st.integers(1, 3))
    def fork(self, plane: str, count: int) -> Any:
        names = [self.fresh() for _ in range(count)]
        self.run(self.store.fork(plane, names))
        source = self.models[plane]
        for name in names:
            self.models[name] = Model(dict(source.objects), source.revision)
        return multiple(*names)

    @rule(plane=planes, name=st.sampled_from(["x", "y"]))
    def checkpoint(self, plane: str, name: str) -> None:
        self.run(self.plane(plane).checkpoint(name))
        model = self.models[plane]
        model.checkpoints[name] = (model.revision, dict(model.objects))

    @rule(plane=planes, name=st.sampled_from(["x", "y"]))
    def drop_checkpoint(self, plane: str, name: str) -> None:
        if self.models[plane].checkpoints.pop(name, None) is not None:
            self.run(self.plane(plane).drop_checkpoint(name))

    @rule(target=planes, plane=planes, name=st.sampled_from(["x", "y"]))
    def fork_from_checkpoint(self, plane: str, name: str) -> Any:
        if name not in self.models[plane].checkpoints:
            return multiple()
        revision, objects = self.models[plane].checkpoints[name]
        fork = self.fresh()
        self.run(self.store.fork(plane, [fork], revision))
        self.models[fork] = Model(dict(objects), revision)
        return fork

    @rule(plane=planes, name=st.sampled_from(["x", "y"]))
    def restore(self, plane: str, name: str) -> None:
        model = self.models[plane]
        if name in model.checkpoints:
            subject = self.plane(plane)
            changes = self.run(subject.restore(subject.checkpoints[name]))
            model.objects = dict(model.checkpoints[name][1])
            model.revision += len(changes)

    @rule(plane=consumes(planes))
    def delete(self, plane: str) -> None:
        self.run(self.store.delete(plane))
        del self.models[plane]

    @rule()
    def clean(self) -> None:
        self.run(self.store.idle())

    @invariant()
    def planes_are_as_written(self) -> None:
        assert self.store.planes() == sorted(self.models)
        for name, model in self.models.items():
            loaded = self.store.loaded(name)
            if loaded is not None:
                self.check(loaded, model)

    def check(self, plane: Plane, model: Model) -> None:
        assert plane.state.revision == model.revision
        assert _plain(plane.state) == model.objects
        history = revisions(plane.events_since(plane.compacted))
        assert history == list(range(plane.compacted + 1, model.revision + 1))
        assert {
            name: (state.revision, _plain(state)) for name, state in plane.checkpoints.items()
        } == model.checkpoints

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()


class DurableFamily(Family):
    """The same on disk, with restarts in between."""

    def __init__(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        super().__init__()

    def backend(self) -> Backend:
        return SqliteBackend(Path(self.directory.name) / "planes.db")

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        before = {name: self.remembered(self.plane(name)) for name in self.models}
        if clean:
            self.run(self.store.idle())
        self.run(self.store.close())
        self.store = Store(self.backend(), RETENTION)
        self.run(self.store.__aenter__())
        assert {name: self.remembered(self.plane(name)) for name in self.models} == before

    @rule()
    def restart_without_loading(self) -> None:
        self.run(self.store.close())
        self.store = Store(self.backend(), RETENTION)
        self.run(self.store.__aenter__())

    def remembered(self, plane: Plane) -> object:
        history = [
            msgspec.structs.astuple(change) for change in plane.events_since(plane.compacted)
        ]
        past = {name: exact(state) for name, state in plane.checkpoints.items()}
        return exact(plane.state), plane.compacted, history, past

    def teardown(self) -> None:
        super().teardown()
        self.directory.cleanup()


class SharedFamily(DurableFamily):
    """The same in an etcd."""

    url = ""

    def __init__(self) -> None:
        self.prefix = f"/{uuid.uuid4().hex}"
        super().__init__()

    def backend(self) -> Backend:
        return EtcdBackend([self.url], prefix=self.prefix)


@pytest.fixture(autouse=True, scope="module")
def running(shared_etcd: Etcd) -> None:
    SharedFamily.url = shared_etcd.url


def _plain(state: PlaneState) -> dict[str, object]:
    return {name: value for (_, _, name), value in contents(state).items()}


TestFamilyInMemory = Family.TestCase
TestFamilyInMemory.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
TestFamilyOnDisk = DurableFamily.TestCase
TestFamilyOnDisk.settings = settings(
    max_examples=20,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestFamilyInEtcd = SharedFamily.TestCase
TestFamilyInEtcd.settings = settings(
    max_examples=8,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
