"""What is done to a host so that a workspace is there or gone, and what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kvestigate.errors import AlreadyExists, Conflict, InputError
from kvestigate.workspace.fence import FIRST_USER, Fencing
from kvestigate.workspace.marker import GpuId, Marker, decode, encode, marker_path
from kvestigate.workspace.plan import Plan, Wish, differences, plan_creation, plan_destruction
from kvestigate.workspace.spec import GpuSpec, StorageMode, StorageSpec, WorkspaceSpec
from kvestigate.workspace.steps import TAKEN, Where
from kvestigate.workspace.survey import Found, Survey

ROOT = "/opt/kvestigate-workspaces"
PATH = f"{ROOT}/w"
GIB = 1 << 30


def spec(
    mode: str = "hybrid",
    size: str = "1G",
    gpu: GpuSpec | None = None,
    name: str = "w",
    root: str = ROOT,
) -> WorkspaceSpec:
    storage = StorageSpec(StorageMode(mode), size)
    return WorkspaceSpec(name, "node-1", root=root, storage=storage, gpu=gpu or GpuSpec())


def marker(made: WorkspaceSpec, *, cordoned: bool = False, owner: str = "", uid: int = 0) -> Marker:
    return Marker(
        workspace=made,
        created_at="2026-01-01T00:00:00Z",
        cordoned=cordoned,
        owner=owner,
        fencing=Fencing.FULL if uid else Fencing.NONE,
        uid=uid,
    )


def seen(
    *found: Found,
    mounts: dict[str, int] | None = None,
    processes: dict[str, int] | None = None,
    memory: int = 8 * GIB,
) -> Survey:
    return Survey(memory, mounts or {}, processes or {}, found)


def wish(
    wanted: WorkspaceSpec,
    owner: str = "",
    gpus: tuple[GpuId, ...] = (),
    fencing: Fencing = Fencing.NONE,
    for_agent: bool = False,
) -> Wish:
    return Wish(wanted, gpus, owner, "2026-01-01T00:00:00Z", fencing, for_agent)


def lines(plan: Plan) -> list[str]:
    return [step.line for step in plan.steps]


MAKE = f"mkdir -p {PATH}"
FILE = f"{ROOT}/.state/w.json"
CLAIM = f"write {FILE}"
FURNISH = f"make code/ env/ datasets/ checkpoints/ logs/ pids/ in {PATH}"
CORDON = "cordon node node-1"


@pytest.mark.parametrize(
    ("wanted", "cordoned", "expected"),
    [
        (spec("disk"), False, [CORDON, CLAIM, MAKE, FURNISH]),
        (spec("disk"), True, [CLAIM, MAKE, FURNISH]),
        (spec("disk", gpu=GpuSpec(cordon_node=False)), False, [CLAIM, MAKE, FURNISH]),
        (
            spec("hybrid"),
            True,
            [
                CLAIM,
                MAKE,
                FURNISH,
                f"mount -t tmpfs -o size=1G,mode=755 kvestigate {PATH}/datasets",
            ],
        ),
        (
            spec("all-tmpfs", "512Mi"),
            True,
            [CLAIM, MAKE, f"mount -t tmpfs -o size=512M,mode=755 kvestigate {PATH}", FURNISH],
        ),
    ],
)
def test_what_creation_does(wanted: WorkspaceSpec, cordoned: bool, expected: list[str]) -> None:
    assert lines(plan_creation(wish(wanted), seen(), cordoned=cordoned)) == expected


@pytest.mark.parametrize(
    ("mode", "mounted", "expected"),
    [
        ("disk", "", [f"rm -rf {PATH}"]),
        ("hybrid", f"{PATH}/datasets", [f"umount {PATH}/datasets", f"rm -rf {PATH}"]),
        ("hybrid", "", [f"rm -rf {PATH}"]),
        ("all-tmpfs", PATH, [f"umount {PATH}", f"rmdir {PATH}"]),
    ],
)
def test_what_destruction_does(mode: str, mounted: str, expected: list[str]) -> None:
    found = Found(PATH, marker(spec(mode)))
    mounts = {mounted: GIB} if mounted else {}
    assert lines(plan_destruction(spec(mode), seen(found, mounts=mounts))) == expected


def test_destruction_follows_the_marker_and_not_what_the_file_says_by_now() -> None:
    found = Found(PATH, marker(spec("all-tmpfs")))
    plan = plan_destruction(spec("disk"), seen(found, mounts={PATH: GIB}))
    assert lines(plan) == [f"umount {PATH}", f"rmdir {PATH}"]


def test_what_runs_is_stopped_before_the_node_is_opened_and_the_marker_goes_last() -> None:
    found = Found(PATH, marker(spec("disk"), cordoned=True))
    plan = plan_destruction(spec("disk"), seen(found, processes={PATH: 3}))
    assert lines(plan) == [
        f"stop the 3 processes that run in {PATH}",
        "uncordon node node-1",
        f"rm -rf {PATH}",
    ]
    assert plan.steps[1].where is Where.CLUSTER
    assert 'rm -f -- "$file"' in plan.steps[-1].script


def test_a_node_stays_closed_for_another_workspace_which_opens_it_later() -> None:
    other = spec("disk", name="other")
    survey = seen(
        Found(PATH, marker(spec("disk"), cordoned=True)), Found(other.path, marker(other))
    )
    heir, _ = plan_destruction(spec("disk"), survey).steps
    assert heir.line == "leave node node-1 cordoned, for workspace other"
    assert heir.where is Where.HOST
    assert '"cordoned":true' in heir.script


def test_memory_that_is_not_there_is_refused() -> None:
    with pytest.raises(Conflict) as caught:
        plan_creation(wish(spec("hybrid", "500G")), seen(memory=6 * GIB), cordoned=True)
    assert "tmpfs_size: 500G is more than the 6.0 GiB of memory that node-1" in caught.value.message
    plan_creation(wish(spec("disk", "500G")), seen(memory=6 * GIB), cordoned=True)


def test_what_exists_as_it_should_is_left_alone() -> None:
    survey = seen(Found(PATH, marker(spec())), mounts={f"{PATH}/datasets": GIB})
    assert plan_creation(wish(spec()), survey, cordoned=True).steps == ()


def test_what_a_restart_took_is_put_back() -> None:
    survey = seen(Found(PATH, marker(spec())))
    plan = plan_creation(wish(spec()), survey, cordoned=False)
    assert lines(plan) == [
        f"note in {FILE} that the node is cordoned for it",
        CORDON,
        f"mount -t tmpfs -o size=1G,mode=755 kvestigate {PATH}/datasets",
    ]


def test_what_exists_and_differs_is_refused() -> None:
    survey = seen(Found(PATH, marker(spec("disk"))))
    with pytest.raises(AlreadyExists) as caught:
        plan_creation(wish(spec("all-tmpfs")), survey, cordoned=True)
    assert "storage.mode is disk, not all-tmpfs" in caught.value.message
    assert "kvestigate workspace diff" in (caught.value.hint or "")


def test_what_belongs_to_somebody_else_is_refused() -> None:
    survey = seen(Found(PATH, marker(spec("disk"), owner="agent-1")))
    with pytest.raises(AlreadyExists, match="belongs to 'agent-1'"):
        plan_creation(wish(spec("disk")), survey, cordoned=True)
    with pytest.raises(AlreadyExists, match="belongs to somebody else"):
        plan_creation(wish(spec("disk"), "agent-2", for_agent=True), survey, cordoned=True)
    assert plan_creation(wish(spec("disk"), owner="agent-1"), survey, cordoned=True).steps == ()


@pytest.mark.parametrize(
    "survey",
    [seen(Found(PATH)), seen(Found(PATH, empty=True), mounts={PATH: GIB})],
)
def test_a_directory_that_is_no_workspace_is_left_alone(survey: Survey) -> None:
    with pytest.raises(Conflict, match="exists but is not a workspace"):
        plan_creation(wish(spec("disk")), survey, cordoned=True)
    with pytest.raises(Conflict, match="exists but is not a workspace"):
        plan_destruction(spec("disk"), survey)


def test_destroying_what_is_not_there_takes_no_steps() -> None:
    plan = plan_destruction(spec(), seen())
    assert (lines(plan), plan.notes) == ([], ("it does not exist",))


def test_an_empty_directory_is_used_or_removed() -> None:
    survey = seen(Found(PATH, empty=True, bare=True))
    assert lines(plan_creation(wish(spec("disk")), survey, cordoned=True)) == [CLAIM, MAKE, FURNISH]
    assert lines(plan_destruction(spec("disk"), survey)) == [f"rmdir {PATH}"]


@pytest.mark.parametrize(
    ("wanted", "made", "fields"),
    [
        (spec("disk"), spec("disk"), []),
        (spec("disk", "1G"), spec("disk", "2G"), []),  # of no consequence on disk
        (spec("all-tmpfs", "1G"), spec("all-tmpfs", "1024Mi"), []),
        (spec("all-tmpfs", "2G"), spec("all-tmpfs", "1G"), ["storage.tmpfs_size"]),
        (spec("disk"), spec("all-tmpfs"), ["storage.mode"]),
        (spec("disk", gpu=GpuSpec(reserve=2)), spec("disk"), ["gpu.reserve"]),
        (
            spec("disk", gpu=GpuSpec(indices=(1, 0))),
            spec("disk", gpu=GpuSpec(indices=(0, 1))),
            [],
        ),
    ],
)
def test_which_fields_differ(wanted: WorkspaceSpec, made: WorkspaceSpec, fields: list[str]) -> None:
    survey = seen(mounts={made.tmpfs_path: GIB})
    changes = differences(wanted, marker(made), survey, cordoned=True)
    assert [change.field for change in changes if not change.repairable] == fields


# The scripts themselves, by the real shell. What mounts is tried on hosts.


def sh(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-eu", "-s"], input=script, capture_output=True, text=True, timeout=30
    )


def creation(
    tmp_path: Path,
    gpus: tuple[GpuId, ...] = (),
    name: str = "w",
    fencing: Fencing = Fencing.NONE,
) -> Plan:
    wanted = spec("disk", root=str(tmp_path / "root"), name=name)
    return plan_creation(wish(wanted, gpus=gpus, fencing=fencing), seen(), cordoned=True)


def test_making_it_and_taking_that_back_leaves_nothing(tmp_path: Path) -> None:
    plan = creation(tmp_path)
    for step in plan.steps:
        assert sh(step.script).returncode == 0
    made = tmp_path / "root" / "w"
    assert {path.name for path in made.iterdir()} == {
        "code", "env", "datasets", "checkpoints", "logs", "pids",
    }  # fmt: skip
    written = tmp_path / "root" / ".state" / "w.json"
    assert decode(written.read_text(), str(made)) is not None
    assert written.parent.stat().st_mode & 0o777 == 0o700
    for step in reversed(plan.steps):
        assert sh(step.undo).returncode == 0
    assert not made.exists()
    assert not written.exists()


def test_what_is_in_the_way_is_not_touched(tmp_path: Path) -> None:
    precious = tmp_path / "root" / "w" / "precious"
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    make = creation(tmp_path).steps[1]
    assert make.line.startswith("mkdir")
    assert sh(make.script).returncode != 0
    assert precious.read_text() == "mine"


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root" / "w").symlink_to(tmp_path / "elsewhere")
    assert sh(creation(tmp_path).steps[1].script).returncode != 0


def test_a_gpu_is_reserved_once_even_if_two_chose_it(tmp_path: Path) -> None:
    gpus = (GpuId(3, "GPU-a"),)
    for step in creation(tmp_path, gpus).steps:
        assert sh(step.script).returncode == 0
    refused = sh(creation(tmp_path, gpus, name="v").steps[0].script)
    assert refused.returncode == TAKEN
    assert "another workspace has just taken GPU 3" in refused.stderr


def test_a_user_is_given_to_one_workspace(tmp_path: Path) -> None:
    """Though both were planned before either was made."""
    plans = [creation(tmp_path, name=name, fencing=Fencing.FULL) for name in ("w", "v")]
    assert [sh(plan.steps[0].script).returncode for plan in plans] == [0, TAKEN]
    made = marker(spec(), uid=FIRST_USER)
    second = plan_creation(
        wish(spec(name="v"), fencing=Fencing.FULL), seen(Found(PATH, made)), cordoned=True
    )
    assert f'"uid":{FIRST_USER + 1}}}' in second.steps[0].script


def test_what_was_begun_is_finished() -> None:
    """The marker is written first, so that whoever is broken off there leaves a trace."""
    made = marker(spec("all-tmpfs"))
    mount = f"mount -t tmpfs -o size=1G,mode=755 kvestigate {PATH}"
    for found, mounts, expected in (
        (Found(PATH, made, absent=True), {}, [MAKE, mount, FURNISH]),
        (Found(PATH, made, empty=True, bare=True), {}, [mount, FURNISH]),
        (Found(PATH, made, empty=True, bare=True), {PATH: GIB}, [FURNISH]),
        (Found(PATH, made), {PATH: GIB}, []),
    ):
        survey = seen(found, mounts=mounts)
        assert lines(plan_creation(wish(spec("all-tmpfs")), survey, cordoned=True)) == expected
    gone = seen(Found(PATH, made, absent=True))
    assert lines(plan_destruction(spec("all-tmpfs"), gone)) == [f"rm {FILE}"]


def test_root_mounts_nothing_where_an_agent_could_have_put_a_link() -> None:
    nested = StorageSpec(StorageMode.HYBRID, "1G", "code/cache")
    wanted = WorkspaceSpec("w", "node-1", storage=nested)
    with pytest.raises(InputError, match="not directly in the workspace"):
        plan_creation(wish(wanted, fencing=Fencing.USER), seen(), cordoned=True)
    plan_creation(wish(wanted), seen(), cordoned=True)


def test_a_marker_is_written_anew(tmp_path: Path) -> None:
    made = spec("disk", root=str(tmp_path))
    written = marked(made)
    plan = plan_creation(wish(made), seen(Found(made.path, marker(made))), cordoned=False)
    assert sh(plan.steps[0].script).returncode == 0
    first = written.read_text().splitlines()[0]
    assert decode(first, made.path) == marker(made, cordoned=True)


def marked(made: WorkspaceSpec) -> Path:
    """The file that makes a directory a workspace."""
    written = Path(marker_path(made))
    written.parent.mkdir(exist_ok=True)
    written.write_text(encode(marker(made)) + "\n")
    return written


def removal(root: Path) -> str:
    wanted = spec("disk", root=str(root))
    plan = plan_destruction(wanted, seen(Found(wanted.path, marker(wanted))))
    [step] = plan.steps
    return step.script


def test_removal_takes_the_tree_and_what_links_in_it_lead_to_stays(tmp_path: Path) -> None:
    made, outside = tmp_path / "w", tmp_path / "outside"
    (made / "code" / "deep").mkdir(parents=True)
    outside.mkdir()
    (outside / "precious").write_text("mine")
    (made / "code" / "link").symlink_to(outside)
    written = marked(spec("disk", root=str(tmp_path)))
    assert sh(removal(tmp_path)).returncode == 0
    assert not made.exists()
    assert not written.exists()
    assert (outside / "precious").read_text() == "mine"


@pytest.mark.parametrize("kind", ["no marker", "link"])
def test_removal_refuses_what_has_no_marker_by_then(tmp_path: Path, kind: str) -> None:
    precious = tmp_path / "target" / "precious"
    precious.parent.mkdir()
    precious.write_text("mine")
    if kind == "link":
        marked(spec("disk", root=str(tmp_path)))
        (tmp_path / "w").symlink_to(tmp_path / "target")
    else:
        (tmp_path / "target").rename(tmp_path / "w")
        precious = tmp_path / "w" / "precious"
    done = sh(removal(tmp_path))
    assert (done.returncode, "is no workspace" in done.stderr) == (1, True)
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"kind":"Workspace"}'])
def test_what_is_no_marker_is_none(text: str) -> None:
    assert decode(text, PATH) is None


def test_a_marker_that_was_copied_elsewhere_is_none() -> None:
    text = encode(marker(spec("disk")))
    assert decode(text, PATH) == marker(spec("disk"))
    assert decode(text, f"{ROOT}/other") is None
