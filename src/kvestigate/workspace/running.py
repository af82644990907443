"""Processes in workspaces: the scripts that start, find and signal them. Pure.

A run is two processes in sessions of their own: one that waits, and the command, which leads the
process group that is signalled. The one that waits writes down how the command ended. Next to
`logs/TAG.log` a run has in `pids/`:

- `TAG.pid`: the command's process, `TAG.meta`: what it is, as JSON;
- `TAG.start`: both processes, when they started and under which boot, since numbers come again;
- `TAG.exit`: exit code and time, once it has ended;
- `TAG.cgroup`: the cgroup that it has for itself, if it has one.
"""

from __future__ import annotations

import enum
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from kvestigate.errors import InputError
from kvestigate.workspace import fence
from kvestigate.workspace.fence import HOME, Fencing
from kvestigate.workspace.limits import CONFINE, Kept, Limits
from kvestigate.workspace.marker import GpuId, Marker
from kvestigate.workspace.options import RunOptions
from kvestigate.workspace.shell import assigned
from kvestigate.workspace.steps import LOCK, TAKEN, TAKEN_BY_MARKER, is_workspace

BUSY = 75
NO_PROGRAM = 72
"""The exit code of a script that finds the tag in use."""
NOT_RUNNING = 76
"""The exit code of a script that finds nothing to signal."""


class RunState(enum.StrEnum):
    RUNNING = "running"
    EXITED = "exited"


@dataclass(frozen=True, slots=True)
class Run:
    tag: str
    pid: int
    state: RunState
    exit_code: int | None
    """None while it runs, and if the node went down before it ended."""
    command: tuple[str, ...]
    gpus: tuple[GpuId, ...]
    started_at: str
    ended_at: str
    """Empty if that is not known."""
    limits: Limits = field(default_factory=Limits)
    kept: Kept = field(default_factory=Kept)


class _Meta(msgspec.Struct, frozen=True):
    tag: str
    cmd: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    """What `cmd` was called in runs of earlier versions."""
    gpus: tuple[GpuId, ...] = ()
    started_at: str = ""
    limits: Limits = Limits()
    cpu_by: str = ""
    memory_by: str = ""


# The name of a process may hold blanks and brackets; behind it all are numbers but the state.
STARTED = """\
started() {
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  set -- ${stat##*) }
  [ "$1" != Z ] && echo "${20}"
}
"""

ALIVE = (
    STARTED
    + """\
alive() {
  [ -f "$1.start" ] || return 1
  now=$(cat /proc/sys/kernel/random/boot_id)
  while read -r pid was boot; do
    if [ "$boot" = "$now" ] && [ "$(started "$pid")" = "$was" ]; then return 0; fi
  done <"$1.start"
  return 1
}
"""
)

_REMEMBER = (
    STARTED
    + """\
remember() {
  boot=$(cat /proc/sys/kernel/random/boot_id)
  printf "%s %s %s\\n" "$$" "$(started "$$")" "$boot" >>"$base.start"
}
"""
)

# Both ends of `TAG.ready` are opened to read and to write, which does not wait for the other end:
# a run whose starter was killed meanwhile would wait for ever.
# A run may fill the memory that its own records are in: room for how it ended is taken before.
_WAIT = (
    _REMEMBER
    + """\
base=$1 lead=$2
shift 2
if ! { remember && printf "%64s\\n" - >"$base.ended"; }; then
  echo full 1<>"$base.ready"
  exit 1
fi
setsid --wait sh -c "$lead" lead "$base" "$@"
code=$?
if [ -f "$base.cgroup" ]; then rmdir "$(cat "$base.cgroup")" 2>/dev/null; fi
printf "%s %s\\n" "$code" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" 1<>"$base.ended"
mv "$base.ended" "$base.exit"
"""
)

# Shells have what they put into the background ignore interrupts, and who started us may be that.
_BEGIN = """\
base=$1 meta=$2
shift 2
cpu_by= memory_by= wrapper=
"""
_LEAD = (
    _REMEMBER
    + """\
note() {
  printf "{\\"started_at\\":\\"%s\\",\\"cpu_by\\":\\"%s\\",\\"memory_by\\":\\"%s\\",%s\\n" \\
    "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$cpu_by" "$memory_by" "$meta"
}
if ! { echo "$$" >"$base.pid" && remember && note >"$base.meta"; }; then
  echo full 1<>"$base.ready"
  exit 1
fi
echo "$$ ${cpu_by:--} ${memory_by:--}" 1<>"$base.ready"
if env --default-signal=INT,QUIT true 2>/dev/null; then
  set -- "$(command -v env)" --default-signal=INT,QUIT "$@"
fi
if [ "$memory_by" = rlimit ]; then ulimit -d $((memory / 1024)); fi
set -- $wrapper "$@"
"""
)
_GIVEN = "KVESTIGATE_GIVEN_"
"""Before the names of the run's own variables, until nobody else has variables any more."""


# GPUs that no workspace has reserved are free unless a run elsewhere has them now.
_TAKEN_BY_RUN = f"""\
in_use() {{
  for each in $(grep -lF -e "$1" "$root"/*/pids/*.meta 2>/dev/null); do
    if alive "${{each%.meta}}"; then echo "a run has just taken $2" >&2; exit {TAKEN}; fi
  done
}}
"""


@dataclass(frozen=True, slots=True)
class Launching:
    """A run that is about to be started, and where."""

    options: RunOptions
    marker: Marker
    gpus: tuple[GpuId, ...]
    processes: int = 4096
    """How many processes and threads the user of the workspace may have."""
    infiniband: bool = False
    """Whether it may have the host's devices for RDMA."""

    @property
    def borrowed(self) -> tuple[GpuId, ...]:
        """GPUs that are its own only while it runs."""
        return tuple(gpu for gpu in self.gpus if gpu not in self.marker.gpus)

    @property
    def words(self) -> tuple[str, ...]:
        """The command, and before it what makes its variables and the fence around it.

        Variables are set last: they could change what every program before it does.
        """
        spec, given = self.marker.workspace, self.options.env
        init = _variables(given)
        if self.marker.fencing is Fencing.NONE:
            return ("sh", "-c", f'{init}exec "$@"', "command", *self.options.command)
        init = f'cd "$KVESTIGATE_WORKSPACE/code"\nexport {_USER}\n{init}"$@"\nexit $?'
        return (
            *fence.within(
                self.marker.fencing,
                spec.root,
                spec.path,
                self.marker.uid,
                tuple(gpu.uuid for gpu in self.gpus),
                self.processes,
                infiniband=self.infiniband,
            ),
            *("sh", "-c", init, "command", *self.options.command),
        )


_USER = f'HOME="$KVESTIGATE_WORKSPACE/{HOME}" USER=workspace LOGNAME=workspace'


def _variables(given: Iterable[str]) -> str:
    programs = '"$KVESTIGATE_WORKSPACE/env/bin'
    path = f'if [ -d {programs}" ]; then PATH={programs}:$PATH"; fi\n'
    own = "".join(f'export {name}="${_GIVEN}{name}"; unset {_GIVEN}{name}\n' for name in given)
    return path + own


def launch_script(launching: Launching) -> str:
    """Start a run, and print its process, and what keeps its limits, once they are written down."""
    options, gpus = launching.options, launching.gpus
    spec = options.workspace
    lines = [
        is_workspace(spec),
        f"cd {shlex.quote(spec.path)}",
        *(f"export {_GIVEN}{name}={shlex.quote(value)}" for name, value in options.env.items()),
        f"export CUDA_VISIBLE_DEVICES={shlex.quote(','.join(gpu.uuid for gpu in gpus))}",
        f"export KVESTIGATE_WORKSPACE={shlex.quote(spec.path)}",
        f"export KVESTIGATE_TAG={shlex.quote(options.tag)}",
        f'base="$PWD"/pids/{options.tag} log="$PWD"/logs/{options.tag}.log',
    ]
    command = " ".join(map(shlex.quote, launching.words))
    checks = "".join(
        f"taken '\"{gpu.uuid}\"' 'GPU {gpu.index}'\nin_use '\"{gpu.uuid}\"' 'GPU {gpu.index}'\n"
        for gpu in launching.borrowed
    )
    return (
        "\n".join(lines)
        + "\n"
        + assigned(
            root=spec.root,
            meta=_meta(options, gpus),
            wait=_WAIT.strip(),
            lead=_lead(options.limits),
        )
        + ALIVE
        + TAKEN_BY_MARKER
        + _TAKEN_BY_RUN
        + (LOCK if launching.borrowed else "")
        + checks
        + f"""\
exec 8>pids/.lock
flock 8
if alive "$base"; then exit {BUSY}; fi
for each in pid meta start ended exit ready cgroup; do rm -f "$base.$each"; done
mkfifo "$base.ready"
exec 7<>"$base.ready"
cd code
{_check_program(launching)}setsid --fork nohup sh -c "$wait" wait "$base" "$lead" "$meta" \\
  {command} \\
  >"$log" 2>&1 </dev/null 7>&- 8>&- 9>&-
read -r pid kept <&7
rm "$base.ready"
if [ "$pid" = full ]; then
  rm -f "$base.meta"
  echo "$base.pid cannot be written: there is no room left in the workspace" >&2
  exit 1
fi
echo "$pid $kept"
"""
    )


def _check_program(launching: Launching) -> str:
    """Fail with the name of a program that does not exist, instead of a run that ends at once.

    It is looked for as root, who sees more than a fenced run may: so only where every run may look,
    and nothing is said of what a link points to. Else the run itself finds out.
    """
    name, given = launching.options.command[0], launching.options.env
    if launching.marker.fencing is not Fencing.NONE and ("/" in name or "PATH" in given):
        return ""
    path = shlex.quote(given["PATH"]) if "PATH" in given else '"$PATH"'
    return f"""\
program={shlex.quote(name)} own="$KVESTIGATE_WORKSPACE/env"
if ! {{ [ -L "$own" ] || [ -L "$own/bin" ] || [ -L "$own/bin/$program" ] ||
    [ -f "$own/bin/$program" ] || (PATH={path}; command -v -- "$program"); }} >/dev/null 2>&1; then
  rm -f "$base.ready"
  printf '%s: no such program\\n' "$program" >&2
  exit {NO_PROGRAM}
fi
"""


def _lead(limits: Limits) -> str:
    confine = limits.assignments + CONFINE if limits else ""
    return f'{_BEGIN}{confine}{_LEAD}exec "$@"'


def kill_script(path: str, tag: str, signal: str) -> str:
    """Send a signal to the process group of a run."""
    return (
        assigned(base=f"{path}/pids/{tag}")
        + ALIVE
        + f"""\
if ! alive "$base"; then exit {NOT_RUNNING}; fi
read -r pid <"$base.pid"
kill -s {signal} -- "-$pid"
"""
    )


def read_script(path: str, tag: str, lines: int | None, most: int) -> str:
    """Print the log of a run, or its last `lines`, never more than `most` bytes."""
    script = assigned(log=f"{path}/logs/{tag}.log")
    if lines is None:
        return script + f'tail -c {most} -- "$log"\n'
    return script + f'tail -n {lines} -- "$log" | tail -c {most}\n'


def follow_script(path: str, run: Run, lines: int | None) -> str:
    """Print the log of a run until its processes have ended."""
    begin = "+1" if lines is None else str(lines)
    script = assigned(log=f"{path}/logs/{run.tag}.log", base=f"{path}/pids/{run.tag}") + ALIVE
    # The one that waits ends last, after the command has written everything.
    return (
        script
        + f"""\
if alive "$base"; then
  read -r pid was boot <"$base.start"
  exec tail -n {begin} --follow --sleep-interval=0.2 --pid="$pid" -- "$log"
fi
exec tail -n {begin} -- "$log"
"""
    )


def parse_run(line: str) -> Run | None:
    """`running 17 - - {...}` or `exited 17 0 2026-01-01T00:00:00Z {...}`; None if it is neither."""
    parts = line.split(" ", 4)
    try:
        state, pid, code, ended, written = parts
        meta = msgspec.json.decode(written.encode("utf-8", "surrogateescape"), type=_Meta)
        alive = RunState(state) is RunState.RUNNING
        return Run(
            tag=meta.tag,
            pid=int(pid),
            state=RunState(state),
            exit_code=None if alive or code == "-" else int(code),
            command=meta.cmd or meta.command,
            gpus=meta.gpus,
            started_at=meta.started_at,
            ended_at="" if alive or ended == "-" else ended,
            limits=meta.limits,
            kept=Kept(meta.cpu_by, meta.memory_by),
        )
    except (ValueError, msgspec.DecodeError, InputError):
        return None


def _meta(options: RunOptions, gpus: tuple[GpuId, ...]) -> str:
    """JSON without its first bracket: the host puts its own time in front."""
    shown = [
        word.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        for word in options.command
    ]
    meta = {"tag": options.tag, "cmd": shown, "gpus": gpus, "limits": options.limits}
    return msgspec.json.encode(meta).decode()[1:]
