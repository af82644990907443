"""What a node's container runs: find the peers, then `setup`, then `run`. Pure."""

from __future__ import annotations

import re
import shlex

from kvestigate.jobs.model import Task

# Where a cluster has no DNS, waiting for names would be waiting for ever.
_FIND_PEERS = """\
peers=""
if getent hosts kubernetes.default >/dev/null 2>&1; then
  deadline=$(( $(date +%s) + {seconds} ))
  for name in {names}; do
    until address=$(getent hosts "$name"); do
      if [ "$(date +%s)" -ge "$deadline" ]; then
        echo "$name did not start within {seconds} s" >&2
        exit 1
      fi
      sleep 1
    done
    peers="$peers${{peers:+
}}${{address%% *}}"
  done
else
  peers={fallback}
fi
export SKYPILOT_NODE_IPS="$peers"
"""

PEER_SECONDS = 300
"""How long a node waits for the others before the task fails."""

_SPECIAL = re.compile(r"\$(?=[$(])")


def script(task: Task, peers: tuple[str, ...]) -> str:
    """The shell script of one node; `peers` are the names of all, none if there is only one."""
    parts = []
    if peers:
        parts.append(
            _FIND_PEERS.format(
                seconds=PEER_SECONDS,
                names=" ".join(peers),
                fallback=shlex.quote("\n".join(peers)),
            )
        )
    if task.workdir:
        directory = shlex.quote(task.workdir)
        parts.append(f"mkdir -p {directory} && cd {directory} || exit 1\n")
    parts.append("shell=$(command -v bash || command -v sh)\n")
    if task.setup.strip():
        parts.append(f'"$shell" -c {shlex.quote(task.setup)} || exit $?\n')
    parts.append(f'exec "$shell" -c {shlex.quote(task.run)}\n')
    return "".join(parts)


def literal(text: str) -> str:
    """`text` so that the kubelet's own expansion of `$(NAME)` and `$$` gives it back unchanged."""
    return _SPECIAL.sub("$$", text)
