"""A command that is stopped when the connection of its exec is lost. Pure.

Container runtimes leave a command running when the connection breaks; its only sign is the end of
standard input. So a shell runs beside the command and waits for that end. The input therefore stays
open as long as the connection lives, even after all input was sent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Runtimes make an exec the leader of a process group. Group 0 means that its leader is outside of
# the container. Any other group may be the container's own and must not be killed. The watch starts
# after the input was passed on, because two processes cannot read one stream. It ends with the
# connection, and does nothing if the command has ended before.
_SCRIPT = """
unset KVESTIGATE_GUARD
exec 3<&0 4>&2 2>/dev/null
size=$1; shift
read -r pid name state parent group rest </proc/$$/stat
case $group in "$$"|0) whom=0;; *) whom=$$;; esac
watch() {
  exec <&3 >/dev/null 4>&-
  trap "" HUP
  while read -r line; do :; done
  trap "" TERM
  kill -0 "$$" && kill -TERM "$whom" && sleep 2 && kill -KILL "$whom"
}
ended= command=
trap 'ended=yes; [ -z "$command" ] || kill -TERM "$command"' TERM
{
  [ "$size" = 0 ] || head -c "$size" <&3
  watch &
} | "$@" 2>&4 3<&- 4>&- &
command=$!
[ -z "$ended" ] || kill -TERM "$command"
trap "" HUP
exec 3<&- 4>&-
wait "$command"
"""

# Keeps the guard script out of the list of processes, which shows the command.
_START = """
KVESTIGATE_GUARD=$1; shift
export KVESTIGATE_GUARD
exec sh -c 'eval "$KVESTIGATE_GUARD"' guard "$@"
"""

# Must match nothing else: a command that was started must not be started again.
_MISSING_SHELL = re.compile(
    r"""["'`]sh["'`].*(not found|no such file|knows only)""", re.IGNORECASE | re.DOTALL
)


def guarded(command: Sequence[str], stdin: int = 0) -> tuple[str, ...]:
    """`command` with a guard; the first `stdin` bytes of the stream are its input."""
    return ("sh", "-c", _START, "guard", _SCRIPT, str(stdin), *command)


def tells_of_no_shell(message: str) -> bool:
    """Whether the runtime refused to start a guarded command because it has no shell."""
    return _MISSING_SHELL.search(message) is not None
