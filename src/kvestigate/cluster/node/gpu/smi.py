"""A stand-in for `nvidia-smi` that tells of simulated GPUs.

`answer` is pure. As a program it reads the GPUs from the file that `$KVESTIGATE_GPUS` names.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import structs

from kvestigate.cluster.node.gpu.model import (
    CUDA,
    DRIVER,
    MODELS,
    PCIE_GEN,
    PCIE_WIDTH,
    VARIABLE,
    Gpu,
    Load,
    Reading,
    RowRemap,
    bus,
    clock_mhz,
    lifetime_errors,
    reading,
    throttle_bits,
)
from kvestigate.cluster.node.gpu.smi_xml import document

FILE = "KVESTIGATE_GPUS"
STATE = ".gpus/state.json"
DEFAULT_FILE = f"/var/lib/kvestigate/volumes/{STATE}"

_UNKNOWN = 2
_NONE = "[N/A]"
_Field = Callable[[Gpu, Reading], str]

# Query field -> its unit and its value.
_GPU_FIELDS: dict[str, tuple[str, _Field]] = {
    "index": ("", lambda gpu, _: str(gpu.number)),
    "uuid": ("", lambda gpu, _: gpu.uuid),
    "gpu_uuid": ("", lambda gpu, _: gpu.uuid),
    "name": ("", lambda gpu, _: MODELS[gpu.model].name),
    "gpu_name": ("", lambda gpu, _: MODELS[gpu.model].name),
    "serial": ("", lambda gpu, _: f"16{gpu.index:011d}"),
    "pci.bus_id": ("", lambda gpu, _: bus(gpu)),
    "gpu_bus_id": ("", lambda gpu, _: bus(gpu)),
    "driver_version": ("", lambda *_: DRIVER),
    "compute_cap": ("", lambda gpu, _: MODELS[gpu.model].capability),
    "pstate": ("", lambda _, now: "P0" if now.utilization else "P8"),
    "persistence_mode": ("", lambda *_: "Enabled"),
    "compute_mode": ("", lambda *_: "Default"),
    "mig.mode.current": ("", lambda gpu, _: "Enabled" if gpu.mig else "Disabled"),
    "utilization.gpu": ("%", lambda gpu, now: _undivided(gpu, now.utilization)),
    "utilization.memory": ("%", lambda gpu, now: _undivided(gpu, now.utilization // 2)),
    "memory.total": ("MiB", lambda gpu, _: str(MODELS[gpu.model].memory_mib)),
    "memory.used": ("MiB", lambda _, now: str(now.memory_mib)),
    "memory.free": ("MiB", lambda gpu, now: str(MODELS[gpu.model].memory_mib - now.memory_mib)),
    "temperature.gpu": ("", lambda _, now: str(now.temperature)),
    "power.draw": ("W", lambda _, now: f"{now.watts:.2f}"),
    "power.limit": ("W", lambda gpu, _: f"{MODELS[gpu.model].watts:.2f}"),
    "enforced.power.limit": ("W", lambda gpu, _: f"{MODELS[gpu.model].watts:.2f}"),
    "fan.speed": ("%", lambda _, now: str(now.fan)),
    "clocks.sm": ("MHz", lambda _, now: str(clock_mhz(now))),
    "clocks.mem": ("MHz", lambda *_: "1593"),
    "ecc.errors.uncorrected.volatile.total": ("", lambda gpu, _: str(gpu.condition.ecc)),
    "ecc.errors.uncorrected.aggregate.total": ("", lambda gpu, _: str(lifetime_errors(gpu))),
    "remapped_rows.pending": ("", lambda gpu, _: _yes(gpu, RowRemap.PENDING)),
    "remapped_rows.failure": ("", lambda gpu, _: _yes(gpu, RowRemap.FAILED)),
    "clocks_event_reasons.active": ("", lambda gpu, now: _bits(gpu, now)),
    "clocks_throttle_reasons.active": ("", lambda gpu, now: _bits(gpu, now)),
    "pcie.link.width.current": ("", lambda gpu, _: str(gpu.condition.pcie_width)),
    "pcie.link.width.max": ("", lambda *_: str(PCIE_WIDTH)),
    "pcie.link.gen.current": ("", lambda *_: str(PCIE_GEN)),
    "pcie.link.gen.max": ("", lambda *_: str(PCIE_GEN)),
}
_APP_FIELDS: dict[str, tuple[str, _Field]] = {
    "gpu_uuid": ("", lambda gpu, _: gpu.uuid),
    "gpu_name": ("", lambda gpu, _: MODELS[gpu.model].name),
    "gpu_bus_id": ("", lambda gpu, _: bus(gpu)),
    "pid": ("", lambda gpu, _: str(_pid(gpu))),
    "process_name": ("", lambda *_: "python3"),
    "name": ("", lambda *_: "python3"),
    "used_memory": ("MiB", lambda _, now: str(now.memory_mib)),
    "used_gpu_memory": ("MiB", lambda _, now: str(now.memory_mib)),
}


def answer(arguments: Sequence[str], gpus: Sequence[Gpu], now: float) -> tuple[int, str]:
    """Exit code and output."""
    lost = "".join(_lost(gpu) for gpu in gpus if gpu.condition.lost)
    code, text = _answer(_options(arguments), [gpu for gpu in gpus if not gpu.condition.lost], now)
    return code, lost + text


def _lost(gpu: Gpu) -> str:
    """What nvidia-smi says first, whatever it is asked, of a GPU that fell off the bus."""
    device = f"Unable to determine the device handle for GPU {bus(gpu)}"
    return f"{device}: GPU is lost.  Reboot the system to recover this GPU\n"


def _answer(options: Mapping[str, str], gpus: Sequence[Gpu], now: float) -> tuple[int, str]:
    if not gpus:
        return 9, "No devices were found\n"
    if "--id" in options or "-i" in options:
        wanted = (options.get("--id") or options.get("-i") or "").split(",")
        gpus = [gpu for gpu in gpus if str(gpu.number) in wanted or gpu.uuid in wanted]
    readings = [(gpu, reading(gpu, now)) for gpu in gpus]
    if "--list-gpus" in options or "-L" in options:
        return 0, "".join(_listed(gpu) for gpu in gpus)
    if "--query-gpu" in options:
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y/%m/%d %H:%M:%S.000")
        known = _GPU_FIELDS | {
            "timestamp": ("", lambda *_: stamp),
            "count": ("", lambda *_: str(len(gpus))),
        }
        return _csv(options["--query-gpu"], known, readings, options.get("--format", ""))
    if "--query-compute-apps" in options:
        working = [device for gpu, now in readings for device in _working(gpu, now)]
        fields = options["--query-compute-apps"]
        return _csv(fields, _APP_FIELDS, working, options.get("--format", ""))
    if options.keys() & {"-q", "--query"} and options.keys() & {"-x", "--xml-format"}:
        return 0, document(readings, now)
    unknown = [word for word in options if word not in ("-i", "--id")]
    if unknown:
        return _UNKNOWN, f"Invalid combination of input arguments: {' '.join(unknown)}\n"
    return 0, _screen(readings, now)


def _options(arguments: Sequence[str]) -> dict[str, str]:
    """`--name=value` or `--name value` for those that take one."""
    options: dict[str, str] = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if not equals and name in _VALUED and words:
            value = words.pop(0)
        options[name] = value
    return options


_VALUED = ("-i", "--id", "--query-gpu", "--query-compute-apps", "--format")


def _csv(
    fields: str,
    known: Mapping[str, tuple[str, _Field]],
    readings: Sequence[tuple[Gpu, Reading]],
    form: str,
) -> tuple[int, str]:
    names = [name.strip() for name in fields.split(",")]
    styles = [style.strip() for style in form.split(",")]
    if "csv" not in styles:
        return _UNKNOWN, "--query requires --format=csv\n"
    for name in names:
        if name not in known:
            return _UNKNOWN, f'Field "{name}" is not a valid field to query.\n\n'
    plain = "nounits" in styles
    lines: list[str] = []
    if "noheader" not in styles:
        heads = [(name, known[name][0]) for name in names]
        lines.append(", ".join(f"{n} [{u}]" if u and not plain else n for n, u in heads))
    for gpu, now in readings:
        values = []
        for name in names:
            unit, value = known[name]
            shown = value(gpu, now)
            values.append(f"{shown} {unit}" if unit and not plain and shown != _NONE else shown)
        lines.append(", ".join(values))
    return 0, "".join(f"{line}\n" for line in lines)


def _screen(readings: Sequence[tuple[Gpu, Reading]], now: float) -> str:
    when = datetime.fromtimestamp(now, UTC).strftime("%a %b %d %H:%M:%S %Y")
    rule = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"
    lines = [
        when,
        "+" + "-" * 89 + "+",
        _line(f"NVIDIA-SMI {DRIVER:<22} Driver Version: {DRIVER:<14} CUDA Version: {CUDA}"),
        rule,
        _row("GPU  Name                 Persistence-M", "Bus-Id          Disp.A", "Uncorr. ECC"),
        _row("Fan  Temp   Perf          Pwr:Usage/Cap", "Memory-Usage", "GPU-Util  Compute M."),
        _row("", "", "MIG M."),
        rule.replace("-", "="),
    ]
    for gpu, shown in readings:
        model = MODELS[gpu.model]
        state = "P0" if shown.utilization else "P8"
        power = f"{shown.watts:.0f}W / {model.watts:4d}W"
        used = f"{shown.memory_mib:>6}MiB / {model.memory_mib:>6}MiB"
        mig = "Enabled" if gpu.mig else "Disabled"
        lines += [
            _row(
                f"{gpu.number:>3}  {model.name[:25]:<25}     On",
                f"{bus(gpu)} Off",
                str(gpu.condition.ecc),
            ),
            _row(
                f"N/A  {shown.temperature:>3}C    {state}  {power:>22}",
                used,
                f"{'N/A' if gpu.mig else f'{shown.utilization}%'}      Default",
            ),
            _row("", "", mig),
            rule,
        ]
    lines += ["", "+" + "-" * 89 + "+", _line("Processes:")]
    working = [device for gpu, shown in readings for device in _working(gpu, shown)]
    for gpu, shown in working:
        left = f"{gpu.number:>3}   N/A  N/A  {_pid(gpu):>8}      C   python3"
        lines.append(_line(f" {left:<72}{shown.memory_mib:>8}MiB"))
    if not working:
        lines.append(_line(" No running processes found"))
    lines.append("+" + "-" * 89 + "+")
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    return f"| {text:<87} |"


def _row(left: str, middle: str, right: str) -> str:
    return f"| {left:<39} | {middle:>22} | {right:>20} |"


def _listed(gpu: Gpu) -> str:
    lines = [f"GPU {gpu.number}: {MODELS[gpu.model].name} (UUID: {gpu.uuid})\n"]
    for number, instance in enumerate(gpu.instances):
        lines.append(f"  MIG {instance.profile:<11} Device {number:>2}: (UUID: {instance.uuid})\n")
    return "".join(lines)


def _yes(gpu: Gpu, state: RowRemap) -> str:
    return "Yes" if gpu.condition.row_remap is state else "No"


def _bits(gpu: Gpu, now: Reading) -> str:
    return f"0x{throttle_bits(gpu, now):016X}"


def _undivided(gpu: Gpu, percent: int) -> str:
    """The utilization, which is not available for a GPU that is divided into instances."""
    return _NONE if gpu.mig else str(percent)


def _working(gpu: Gpu, now: Reading) -> list[tuple[Gpu, Reading]]:
    """The GPU, or its instances, as processes see them."""
    if gpu.load is Load.IDLE:
        return []
    if not gpu.mig:
        return [(gpu, now)]
    used = [(number, instance) for number, instance in enumerate(gpu.instances) if instance.user]
    share = structs.replace(now, memory_mib=now.memory_mib // max(len(gpu.instances), 1))
    return [
        (structs.replace(gpu, uuid=instance.uuid, pid=_pid(gpu) + 100 * (number + 1)), share)
        for number, instance in used
    ]


def _pid(gpu: Gpu) -> int:
    return gpu.pid or 4000 + gpu.index


def visible(gpus: Sequence[Gpu], devices: str | None) -> list[Gpu]:
    """Those that `NVIDIA_VISIBLE_DEVICES` lets a container see, numbered anew; without it, all."""
    if devices is None or devices == "all":
        return list(gpus)
    wanted = devices.split(",")
    whole = [gpu for gpu in gpus if gpu.uuid in wanted or str(gpu.index) in wanted]
    parts = [
        structs.replace(gpu, instances=given)
        for gpu in gpus
        if (given := tuple(instance for instance in gpu.instances if instance.uuid in wanted))
    ]
    seen = sorted([*whole, *parts], key=lambda gpu: gpu.index)
    return [structs.replace(gpu, place=place) for place, gpu in enumerate(seen)]


def main() -> None:
    try:
        data = Path(os.environ.get(FILE, DEFAULT_FILE)).read_bytes()
        gpus = msgspec.json.decode(data, type=list[Gpu])
    except (OSError, msgspec.DecodeError):
        gpus = []
    shown = visible(gpus, os.environ.get(VARIABLE))
    code, text = answer(sys.argv[1:], shown, time.time())
    sys.stdout.write(text)
    raise SystemExit(code)


def write_state(path: Path, gpus: Sequence[Gpu]) -> None:
    """Replace the file that the program reads."""
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.encode(gpus))
    fresh.replace(path)


def directories() -> list[str]:
    """What the program reads, on a node."""
    python = [sys.prefix, sys.base_prefix, str(Path("/proc/self/exe").resolve().parent)]
    places = [*python, *filter(os.path.isdir, sys.path), str(Path(DEFAULT_FILE).parent)]
    return list(dict.fromkeys(os.path.realpath(path) for path in places))


def program() -> str:
    """The text of an executable `nvidia-smi` that runs on this installation."""
    # Not sys.executable: that may be a link that another user, or a node, cannot follow.
    running = Path("/proc/self/exe")
    interpreter = running.resolve() if running.exists() else sys.executable
    return (
        f"#!{interpreter}\n"
        "import sys\n"
        f"sys.path[:0] = {[path for path in sys.path if path]!r}\n"
        "from kvestigate.cluster.node.gpu.smi import main\n"
        "main()\n"
    )


if __name__ == "__main__":
    main()
