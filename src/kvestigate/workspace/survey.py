"""What there is on a host: workspaces, their mounts and their runs, in one go."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kvestigate.node_access.remote import Remote
from kvestigate.workspace.host import looking, perform
from kvestigate.workspace.marker import STATE, Marker, decode
from kvestigate.workspace.running import ALIVE, Run, RunState, parse_run
from kvestigate.workspace.sizes import parse_size
from kvestigate.workspace.spec import WorkspaceSpec

EVERY = "*"

# $1 is a name or `*`, the others are where to look. A process tells by its environment where it
# belongs, whatever became of the one that started it.
_SCRIPT = (
    ALIVE
    + f"""\
name=$1
shift
sed -n 's/^MemAvailable: *\\([0-9]*\\) kB$/memory \\1/p' /proc/meminfo
sed -n 's/^[^ ]* \\([^ ]*\\) tmpfs \\([^ ]*\\) .*/mount \\1 \\2/p' /proc/self/mounts
for each in $(grep -lz '^KVESTIGATE_WORKSPACE=' /proc/[0-9]*/environ 2>/dev/null); do
  tr '\\0' '\\n' 2>/dev/null <"$each" | sed -n 's/^KVESTIGATE_WORKSPACE=/process /p' || :
done
for root in "$@"; do
  for marker in "$root/{STATE}"/$name.json; do
    path=${{marker##*/}}
    path=$root/${{path%.json}}
    [ -f "$marker" ] && [ ! -d "$path" ] || continue
    printf 'at %s\\nmarker %s\\nabsent\\n' "$path" "$(head -n 1 "$marker")"
  done
  for path in "$root"/$name; do
    [ -d "$path" ] && [ ! -L "$path" ] || continue
    printf 'at %s\\n' "$path"
    marker=$root/{STATE}/${{path##*/}}.json
    if [ -f "$marker" ]; then printf 'marker %s\\n' "$(head -n 1 "$marker")"; fi
    if [ -z "$(ls -A "$path")" ]; then echo empty; fi
    if [ ! -d "$path/pids" ]; then echo bare; fi
    for meta in "$path"/pids/*.meta; do
      [ -f "$meta" ] || continue
      base=${{meta%.meta}}
      state=exited
      if alive "$base"; then state=running; fi
      read -r pid 2>/dev/null <"$base.pid" || pid=0
      exit="- -"
      if [ -f "$base.exit" ]; then read -r exit <"$base.exit" || exit="- -"; fi
      printf 'run %s %s %s %s\\n' "$state" "$pid" "$exit" "$(head -n 1 "$meta")"
    done
  done
done
"""
)

_SIZE = re.compile(r"(?:^|,)size=(\d+k?)(?:,|$)", re.ASCII)


@dataclass(slots=True)
class Found:
    """A directory where a workspace could be."""

    path: str
    marker: Marker | None = None
    """None if it is no workspace."""
    absent: bool = False
    """Whether there is a marker and no directory."""
    empty: bool = False
    bare: bool = False
    """Whether it lacks the directories of a workspace."""
    runs: list[Run] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Survey:
    memory: int
    """Bytes that the host could still give."""
    mounts: Mapping[str, int]
    """Where tmpfs is mounted -> bytes that it may take; 0 if that is not told."""
    processes: Mapping[str, int]
    """Path of a workspace -> processes that belong to it, runs and what they left behind."""
    found: tuple[Found, ...]

    def at(self, spec: WorkspaceSpec) -> Found | None:
        return next((workspace for workspace in self.found if workspace.path == spec.path), None)

    @property
    def claims(self) -> dict[str, str]:
        """UUID of a GPU -> the workspace that has reserved it, or has a run on it now."""
        reserved = {
            gpu.uuid: marker.workspace.name for marker in self.markers for gpu in marker.gpus
        }
        return {
            gpu.uuid: found.path.rpartition("/")[2]
            for found in self.found
            for run in found.runs
            if run.state is RunState.RUNNING
            for gpu in run.gpus
        } | reserved

    @property
    def markers(self) -> tuple[Marker, ...]:
        return tuple(workspace.marker for workspace in self.found if workspace.marker is not None)


async def survey(host: Remote, *roots: str, name: str = EVERY) -> Survey:
    """Look at what is below `roots`, or at one workspace there."""
    where = tuple(dict.fromkeys(roots))
    return parse_survey(await perform(looking(host), _SCRIPT, name, *where))


def parse_survey(text: str) -> Survey:
    """PURE. What the script printed."""
    memory = 0
    mounts: dict[str, int] = {}
    processes: Counter[str] = Counter()
    found: list[Found] = []
    for line in text.split("\n"):
        word, _, rest = line.partition(" ")
        if word == "memory":
            memory = int(rest) << 10
        elif word == "mount":
            path, _, options = rest.partition(" ")
            mounts[path] = _size(options)
        elif word == "process":
            processes[rest] += 1
        elif word == "at":
            found.append(Found(rest))
        elif found:
            _tell(found[-1], word, rest)
    return Survey(memory, mounts, processes, tuple(found))


def _tell(found: Found, word: str, rest: str) -> None:
    if word == "marker":
        found.marker = decode(rest, found.path)
    elif word == "absent":
        found.absent = True
    elif word == "empty":
        found.empty = True
    elif word == "bare":
        found.bare = True
    elif word == "run" and (run := parse_run(rest)) is not None:
        found.runs.append(run)


def _size(options: str) -> int:
    told = _SIZE.search(options)
    return parse_size(told[1]) if told and told[1] not in ("0", "0k") else 0
