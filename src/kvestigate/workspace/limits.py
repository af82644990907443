"""How much CPU and memory a run may take, and the scripts that keep it within. Pure.

The first of these that works on the host keeps all that was asked for:

- `systemd`: a scope of the user's own service manager;
- `cgroup`: a cgroup v2 of the run's own, where the directory is ours to write to;
- else each of them by itself: memory by `rlimit` (each process on its own), CPU by `taskset`
  (whole CPUs) or, where there is none, by `nice`, which only lets others go first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kvestigate.errors import InputError
from kvestigate.kube import quantities
from kvestigate.operation import param

_LEAST_MEMORY = 16 << 20
"""Bytes without which no program starts."""


@dataclass(frozen=True, slots=True)
class Limits:
    """As Kubernetes writes amounts; empty: as much as there is."""

    cpu: Annotated[str, param("CPUs: `2`, `1500m`.")] = ""
    memory: Annotated[str, param("Memory: `4Gi`.")] = ""

    def __post_init__(self) -> None:
        if self.cpu and self._amount("cpu") < 10:
            raise InputError(f"{self.cpu!r} is less than 10m", where="limits.cpu")
        if self.memory and self._amount("memory") < _LEAST_MEMORY:
            raise InputError(f"{self.memory!r} is less than 16Mi", where="limits.memory")

    def __bool__(self) -> bool:
        return bool(self.cpu or self.memory)

    def _amount(self, name: str) -> int:
        read = quantities.millis if name == "cpu" else quantities.whole
        try:
            return read(getattr(self, name))
        except InputError as error:
            raise InputError(error.message, where=f"limits.{name}", hint=error.hint) from None

    def within(self, cpu: str, memory: str) -> Limits:
        """Itself, where it asks for no more than these; what it leaves open they decide."""
        highest = Limits(cpu, memory)
        for name in ("cpu", "memory"):
            asked, most = getattr(self, name), getattr(highest, name)
            if asked and most and self._amount(name) > highest._amount(name):
                raise InputError(
                    f"{asked!r} is more than {most}, which is the most that a run may take",
                    where=f"limits.{name}",
                )
        return Limits(self.cpu or cpu, self.memory or memory)

    @property
    def assignments(self) -> str:
        """For the script: hundredths of a CPU, and bytes."""
        cpu = -(-self._amount("cpu") // 10) if self.cpu else ""
        memory = self._amount("memory") if self.memory else ""
        return f"cpu={cpu} memory={memory}\n"


@dataclass(frozen=True, slots=True)
class Kept:
    """What keeps the limits of a run, on the host where it is."""

    cpu: str = ""
    """`systemd`, `cgroup`, `taskset` or `nice`; empty: nothing, or there is no limit."""
    memory: str = ""
    """`systemd`, `cgroup` or `rlimit`; empty: nothing, or there is no limit."""

    @classmethod
    def parse(cls, words: str) -> Kept:
        """`taskset rlimit`, with `-` for nothing."""
        cpu, memory = ("" if word == "-" else word for word in words.split())
        return cls(cpu, memory)


# `confine` sets what keeps which limit, and `wrapper` to what has to start the command.
CONFINE = """\
own=$(sed -n 's/^0:://p' /proc/self/cgroup)
runtime=/run/user/$(id -u)
inside='own=/sys/fs/cgroup$(sed -n "s/^0:://p" /proc/self/cgroup)
[ -z "$1" ] || case $(cat "$own/cpu.max") in ""|max*) exit 1;; esac
[ -z "$2" ] || case $(cat "$own/memory.max") in ""|max*) exit 1;; esac'
scope() {
  echo "env XDG_RUNTIME_DIR=$runtime systemd-run --user --scope --quiet --collect \
${cpu:+-p CPUQuota=$cpu%} ${memory:+-p MemoryMax=$memory} -- env -u XDG_RUNTIME_DIR"
}
by_systemd() {
  command -v systemd-run >/dev/null && [ -d "$runtime" ] || return 1
  timeout 10 $(scope) sh -euc "$inside" inside "$cpu" "$memory" || return 1
  wrapper=$(scope)
}
by_cgroup() {
  for above in /sys/fs/cgroup "/sys/fs/cgroup$own"; do
    [ -f "$above/cgroup.controllers" ] || continue
    leaf=$above/kvestigate-runs/${KVESTIGATE_WORKSPACE##*/}.${base##*/}
    if enter; then echo "$leaf" >"$base.cgroup"; return; fi
    rmdir "$leaf" "$above/kvestigate-runs"
  done
  return 1
}
enter() {
  mkdir -p "$leaf" || return 1
  for each in ${cpu:+cpu} ${memory:+memory}; do
    echo "+$each" >"$above/cgroup.subtree_control" || return 1
    echo "+$each" >"$above/kvestigate-runs/cgroup.subtree_control" || return 1
  done
  if [ -n "$cpu" ]; then echo "$((cpu * 1000)) 100000" >"$leaf/cpu.max" || return 1; fi
  if [ -n "$memory" ]; then echo "$memory" >"$leaf/memory.max" || return 1; fi
  echo $$ >"$leaf/cgroup.procs"
}
allowed() {
  for part in $(taskset -cp $$ | sed 's/.*: //; s/,/ /g'); do
    seq "${part%-*}" "${part#*-}"
  done
}
some() {
  count=$1
  shift
  [ "$count" -le $# ] || count=$#
  printf '%s\\n' "$@" "$@" | tail -n "+$(($$ % $# + 1))" | head -n "$count" | paste -sd, -
}
by_itself() {
  if [ -n "$memory" ] && (ulimit -d $((memory / 1024))); then memory_by=rlimit; fi
  [ -n "$cpu" ] || return 0
  if command -v taskset >/dev/null &&
    taskset -cp "$(some $(((cpu + 99) / 100)) $(allowed))" $$ >/dev/null; then
    cpu_by=taskset
  elif renice -n 10 -p $$ >/dev/null; then
    cpu_by=nice
  fi
}
confine() {
  for each in systemd cgroup; do
    if "by_$each" >/dev/null; then
      cpu_by=${cpu:+$each} memory_by=${memory:+$each}
      return
    fi
  done
  by_itself
}
confine 2>/dev/null
"""
