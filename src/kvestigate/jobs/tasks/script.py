"""What a node's container runs: find the peers, then `setup`, then `run`. Pure."""

from __future__ import annotations

import re
import shlex

from kvestigate.jobs.tasks.limits import GATHER_SECONDS
from kvestigate.jobs.tasks.model import Task
from kvestigate.jobs.tasks.pieces import Files

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
export SKYPILOT_NODE_IPS="$peers" SKYPILOT_SETUP_NODE_IPS="$peers"
found=$(date +%s)
"""

# A name is gone when its node is done, and caches of DNS keep for seconds that it was not there.
# So a node that is done at once waits a little for those that still look for it.
_RUN_AND_LINGER = """\
"$shell" -c {run} &
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM INT
wait "$child"
code=$?
while kill -0 "$child" 2>/dev/null; do
  wait "$child"
  code=$?
done
rest=$(( found + ${{KVESTIGATE_LINGER_SECONDS:-{seconds}}} - $(date +%s) ))
if [ "$code" -eq 0 ] && [ "$rest" -gt 0 ]; then
  trap 'exit 0' TERM INT
  sleep "$rest" &
  wait $!
fi
exit "$code"
"""

LINGER_SECONDS = 10
"""Longer than CoreDNS remembers what was not there, and than a round of looking takes."""

_SPECIAL = re.compile(r"\$(?=[$(])")


FILES = "/var/run/kvestigate/files"
"""Where the parts of an archive are mounted."""

DONE = "complete"
"""The file that says that all parts are there, and the word for it."""

READY = "ready"

# A part is there as it was sent, or not at all, also if an earlier connection's end is unnoticed.
# `dd` because it reads what it is told to and not a byte more.
RECEIVE = f"""\
for part in {FILES}/part-*; do
  [ -e "$part" ] && echo "${{part##*/}}"
done
echo {READY}
while read -r name size digest; do
  if [ "$name" = {DONE} ]; then
    : > {FILES}/{DONE} && echo {DONE}
    exit
  fi
  new=$(mktemp {FILES}/new-XXXXXX) || exit 1
  dd bs="$size" count=1 iflag=fullblock of="$new" 2>/dev/null || exit 1
  if command -v sha256sum >/dev/null; then
    echo "$digest  $new" | sha256sum -c - >/dev/null || exit 1
  fi
  mv "$new" "{FILES}/$name" && echo "$name" || exit 1
done
exit 1
"""
"""Reads parts, each after a line with its name, size and SHA-256; names those that are there."""

_AWAIT = """\
deadline=$(( $(date +%s) + {seconds} ))
until [ -e {files}/{done} ]; do
  if [ "$(date +%s)" -ge "$deadline" ]; then
    echo "the files of the task did not come within {seconds} s" >&2
    exit 1
  fi
  sleep 1
done
"""

AWAIT_SECONDS = 3600
"""How long a node waits for files that are sent to it."""

_UNPACK = """\
: "${{HOME:=/root}}"
unpacked=$(mktemp -d) || exit 1
cat {files}/part-* > "$unpacked/archive" || exit 1
if command -v sha256sum >/dev/null; then
  echo "{digest}  $unpacked/archive" | sha256sum -c - >/dev/null || exit 1
fi
tar -xzf "$unpacked/archive" -C "$unpacked" || exit 1
"""
# Nodes may share what they write to. So every file comes by a rename: who reads it meanwhile,
# on this node or another, has the old one or the new one, and never a part.
_PLACE_TREE = """\
place() {
  for each in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    [ -e "$each" ] || [ -L "$each" ] || continue
    old=$2/${each##*/}
    if [ -L "$each" ] || [ ! -d "$each" ]; then
      mv -f "$each" "$old" || return 1
    elif ! mv -T "$each" "$old" 2>/dev/null; then
      mkdir -p "$old" && (place "$each" "$old") || return 1
    fi
  done
}
"""
_PLACE = """\
if [ -d "$unpacked/{index}" ]; then
  mkdir -p {target} && new=$(mktemp -d {target}/.kvestigate-XXXXXX) || exit 1
  cp -R "$unpacked/{index}/." "$new" && place "$new" {target} && rm -rf "$new" || exit 1
else
  mkdir -p "$(dirname {target})" || exit 1
  new=$(mktemp "$(dirname {target})/.kvestigate-XXXXXX") || exit 1
  cp -p "$unpacked/{index}" "$new" && mv -f "$new" {target} || exit 1
fi
"""


def script(task: Task, peers: tuple[str, ...], files: Files | None = None) -> str:
    """The shell script of one node; `peers` are the names of all, none if there is only one."""
    parts = []
    if task.uploads and files is not None:
        if files.streamed:
            parts.append(_AWAIT.format(files=FILES, done=DONE, seconds=AWAIT_SECONDS))
        parts.append(_UNPACK.format(files=FILES, digest=files.digest) + _PLACE_TREE)
        for index, upload in enumerate(task.uploads):
            parts.append(_PLACE.format(index=index, target=_directory(upload.target)))
        parts.append('rm -rf "$unpacked"\n')
    if peers:
        parts.append(
            _FIND_PEERS.format(
                seconds=GATHER_SECONDS,
                names=" ".join(peers),
                fallback=shlex.quote("\n".join(peers)),
            )
        )
    if task.workdir:
        directory = _directory(task.workdir)
        parts.append(f"mkdir -p {directory} && cd {directory} || exit 1\n")
    parts.append("shell=$(command -v bash || command -v sh)\n")
    if task.setup.strip():
        parts.append(f'"$shell" -c {shlex.quote(task.setup)} || exit $?\n')
    run = shlex.quote(task.run)
    if peers:
        parts.append(_RUN_AND_LINGER.format(run=run, seconds=LINGER_SECONDS))
    else:
        parts.append(f'exec "$shell" -c {run}\n')
    return "".join(parts)


def _directory(path: str) -> str:
    """A path as a word of the shell."""
    if path.startswith("~/"):
        return f'"$HOME"/{shlex.quote(path[2:])}'
    return shlex.quote(path)


def literal(text: str) -> str:
    """`text` so that the kubelet's own expansion of `$(NAME)` and `$$` gives it back unchanged."""
    return _SPECIAL.sub("$$", text)
