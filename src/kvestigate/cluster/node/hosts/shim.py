"""The small shell process that stands between the agent and a container's command.

It outlives the agent: it holds the ends of the pipes, waits for the command and writes down
how it ended. So a new agent finds the container running, or learns its exit code, and output
waits in the pipe meanwhile (as much as a pipe holds; then the container waits too).

Files of one run: `out err in` (named pipes of the command), `ready done` (those on which the
shim says that the command began and ended, and is told to go), `shim` (who the shim is), `pid`
(the command), `exit` (its exit code), `run.json` (what an agent has to know again), `log`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kvestigate.cluster.node.hosts.interface import Launch, Network, RunKey
from kvestigate.cluster.node.hosts.seccomp import KEPT, gated
from kvestigate.cluster.node.hosts.terminal import in_turn, take_stdin

# Opened for reading and writing, a pipe never blocks its opener and never breaks when the
# agent goes away. The shell's own complaints ("Killed") must not end up in the log.
_OPEN_PIPES = 'exec 1<>"$dir/out" 3<>"$dir/err" 5<>"$dir/ready" 2>/dev/null; '
_IDENTIFY = (
    'dir=$1; shift; { read -r me </proc/$$/stat; } 2>/dev/null || me=$$; echo "$me" >"$dir/shim"; '
)
_STDIN = {
    "none": "exec 0</dev/null; ",
    "once": 'exec 0<"$dir/in"; ',
    # A second opener keeps the pipe from ending between two sessions.
    "kept": 'exec 0<"$dir/in" 4<>"$dir/in"; ',
}
# The inner shell becomes the command: when it says that it is ready, there is a process with
# the command's pid that signals reach.
BEGUN, ENDED = b"begun", b"ended"
READY = 'echo begun >&5; exec "$@" 5>&-'
OWN_CHILD = f"""exec sh -c 'echo $$ >"$0"; {READY}' "$dir/pid" "$@" """
"""For `script`: a command that is the shim's own child and writes down its pid."""
ENTERING = 'exec "$@"'
"""For `script`: a command that enters namespaces. It is found from outside, by its parents."""
# A named pipe forgets what is in it with its last opener, so the shim stays until somebody has
# read the last output and says so.
_RECORD = '; echo $? >"$dir/exit"; echo ended >&5; read -r _ <"$dir/done"'


class Kept(msgspec.Struct, frozen=True):
    """What a later agent needs to take a run over."""

    pod_uid: str
    container: str
    attempt: int
    started_at: float
    env: dict[str, str]
    workdir: str
    tty: bool = False
    stdin: bool = False
    user: int | None = None
    """The user that runs the command, if it is another than the agent's."""
    become: tuple[str, ...] = ()
    """The words before a command that make it one of the container's."""
    network: bool = False
    """Whether the shim keeps a descriptor on which network calls are told."""
    extra: dict[str, str] = {}
    """What the host itself wants to remember."""


def run_directory(node: Path, key: RunKey) -> Path:
    """The directory of one run of a container, below that of its node."""
    return node / "pods" / key.pod_uid / f"runs-{key.container}" / str(key.attempt)


def run_directories(node: Path) -> list[Path]:
    """The directories of all runs that a node has kept."""
    return sorted((node / "pods").glob("*/runs-*/*"))


def _stdin_mode(launch: Launch) -> str:
    """How the shim opens the command's stdin."""
    if not launch.stdin:
        return "none"
    return "once" if launch.stdin_once else "kept"


def script(command: str, launch: Launch, groups: Sequence[str] = ()) -> str:
    """The shim's program. It joins `groups` (`cgroup.procs` files) first, with all that follows."""
    join = "".join(f"echo $$ >{shlex.quote(group)}; " for group in groups)
    if launch.tty:
        streams = 'exec 3>&2 5<>"$dir/ready" 2>/dev/null; '
    else:
        streams = _OPEN_PIPES + _STDIN[_stdin_mode(launch)]
    # A subshell, because the shell that waits would else complain on the command's own stderr.
    return _IDENTIFY + join + streams + f"({command} 2>&3 3>&- 4>&- {KEPT}>&-)" + _RECORD


def prepare(directory: Path, kept: Kept) -> None:
    """Make a run's directory, before its shim starts."""
    directory.mkdir(parents=True, mode=0o711)
    for name in ("out", "err", "in", "ready", "done"):
        os.mkfifo(directory / name, 0o600)
    if kept.user is not None:  # who may open `/dev/stdout` anew
        for name in ("out", "err", "in"):
            os.chown(directory / name, kept.user, -1)
    (directory / "run.json").write_bytes(msgspec.json.encode(kept))


def spawn(
    directory: Path,
    program: str,
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    keep: Sequence[int] = (),
    tty: int | None = None,
    network: Network | None = None,
    own_files: bool = False,
) -> subprocess.Popen[bytes]:
    """The shim keeps the descriptor on which the container's network calls are told: until the
    next agent takes it over, they wait.

    A terminal controls the shim's session, or that which the container's setup makes (`setsid`)
    where the container has namespaces of its own.
    """
    controlled = tty is not None and not own_files
    with gated(network, keep=True, own_files=own_files) as close_gate:
        return subprocess.Popen(
            ["/bin/sh", "-c", program, "kvestigate-shim", str(directory), *arguments],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL if tty is None else tty,
            stdout=subprocess.DEVNULL if tty is None else tty,
            stderr=subprocess.DEVNULL if tty is None else tty,
            start_new_session=True,
            preexec_fn=in_turn(take_stdin if controlled else None, close_gate),
            pass_fds=(*keep, *([KEPT] if close_gate is not None else [])),
        )


def kept_of(directory: Path) -> Kept | None:
    try:
        return msgspec.json.decode((directory / "run.json").read_bytes(), type=Kept)
    except (OSError, msgspec.DecodeError):
        return None  # the agent died while it wrote: nothing was started


def exit_code_of(directory: Path) -> int | None:
    """What the shim wrote down; None when it was killed before it could."""
    return _number(directory / "exit")


def command_pid_of(directory: Path) -> int | None:
    return _number(directory / "pid")


def shim_pid_of(directory: Path) -> int | None:
    """The shim's pid if it still runs: a pid alone may be somebody else's by now."""
    try:
        written = (directory / "shim").read_text().strip()
    except OSError:
        return None
    if not written:
        return None
    pid = int(written.split()[0])
    if " " not in written:
        return pid if _exists(pid) else None
    try:
        now = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return pid if start_time(now) == start_time(written) and state(now) != "Z" else None


def start_time(stat: str) -> str:
    """Field 22 of `/proc/PID/stat`; the name in field 2 may hold anything."""
    return stat.rpartition(")")[2].split()[19]


def state(stat: str) -> str:
    return stat.rpartition(")")[2].split()[0]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _number(path: Path) -> int | None:
    try:
        text = path.read_text()
    except OSError:
        return None
    return int(text) if text.endswith("\n") and text.strip().isdigit() else None
