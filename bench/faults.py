"""What three auditors say about the same faults and the same healthy oddities.

The states of `tests/health/states` are planted on a real API server without controllers, where
nothing changes them. An object counts as named if an auditor says anything about it or about
another object of its case; a cause as told if the words of the case are in what it says. Of
healthy cases everything above advice is a false alarm. All three are judged by the same words.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.frame import BenchFailed
from bench.settings import Settings
from bench.versions import versions
from kvestigate.client.access import resolve
from kvestigate.client.choice import AccessOptions
from kvestigate.client.connect import connect
from tests.health.planting import STATES, Case, cases
from tests.health.states_on_server import plant_all
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster

_BUILD = Path(__file__).parent.parent / "tools" / "auditors" / "build"
_PATIENCE = 900.0
_WARNING = 2
"""Popeye's levels: 1 is advice, 2 a warning, 3 an error."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that an auditor says."""

    about: str
    """The object, as the auditor writes it."""
    text: str
    advice: bool = False


@dataclass(frozen=True, slots=True)
class Auditor:
    name: str
    command: Sequence[str]
    remarks: Callable[[Any], Iterator[Remark]]


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    named: int
    told: int
    alarms: int
    """Remarks about healthy cases."""
    alarmed: int
    """Healthy cases with at least one."""
    seconds: float


@dataclass(frozen=True, slots=True)
class FaultsResult:
    name: str
    faults: int
    healthy: int
    rows: Sequence[Row]
    versions: str

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def render(self) -> str:
        head = f"{'':34} {'named':>12} {'cause told':>12} {'false alarms':>20} {'seconds':>8}"
        lines = [
            f"faults: {self.faults} faults and {self.healthy} healthy oddities on one real "
            f"kube-apiserver\n{self.versions}",
            head,
        ]
        for row in self.rows:
            alarms = f"{row.alarms} in {row.alarmed} cases"
            lines.append(
                f"{row.name:34} {self._share(row.named):>12} {self._share(row.told):>12} "
                f"{alarms:>20} {row.seconds:>8.1f}"
            )
        return "\n".join(lines)

    def _share(self, count: int) -> str:
        return f"{count} ({count / self.faults:.0%})"


def run(settings: Settings) -> FaultsResult:
    settings.progress("building popeye and k8sgpt, if they are not there")
    tools = Path(subprocess.check_output([str(_BUILD)], text=True).strip().splitlines()[-1])
    bank = [case for case in cases(STATES, now=datetime.now(UTC)) if not case.alone]
    with (
        tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as directory,
        UpstreamCluster(binaries.find(), Path(directory)) as cluster,
    ):
        config = str(cluster.admin_kubeconfig())
        settings.progress(f"planting {len(bank)} cases")
        asyncio.run(_plant(config, bank))
        rows = [_ask(one, bank, settings) for one in _auditors(config, tools)]
    faults = sum(not case.healthy for case in bank)
    ours = ", ".join(f"{name} {value}" for name, value in versions("kvestigate").items())
    known = f"{ours}, popeye 0.22.1, k8sgpt 0.3.48 (all analyzers, no model)"
    return FaultsResult("faults", faults, len(bank) - faults, rows, known)


async def _plant(config: str, bank: Sequence[Case]) -> None:
    environ = {"KUBECONFIG": config, "PATH": os.environ["PATH"]}
    async with connect(resolve(AccessOptions(), environ, None)) as api:
        await plant_all(api, bank)


def _auditors(config: str, tools: Path) -> list[Auditor]:
    ours = [sys.executable, "-m", "kvestigate", "--kubeconfig", config, "audit", "-ojson"]
    popeye, k8sgpt = (str(next(tools.glob(f"{name}-v*"))) for name in ("popeye", "k8sgpt"))
    filters = [
        "Pod", "ReplicaSet", "PersistentVolumeClaim", "Service", "Ingress", "StatefulSet", "Node",
        "ValidatingWebhookConfiguration", "Deployment", "CronJob", "MutatingWebhookConfiguration",
        "HorizontalPodAutoScaler", "PodDisruptionBudget", "NetworkPolicy", "GatewayClass",
        "Gateway", "HTTPRoute",
    ]  # fmt: skip
    analyze = [k8sgpt, "analyze", "--kubeconfig", config, "-o", "json", "-f", ",".join(filters)]
    return [
        Auditor("kvestigate audit", ours, _ours),
        Auditor("kvestigate audit --profile all", [*ours, "--profile", "all"], _ours),
        Auditor(
            "popeye",
            [popeye, "--kubeconfig", config, "-A", "-o", "json", "--force-exit-zero"],
            _of_popeye,
        ),
        Auditor("k8sgpt analyze", analyze, _of_k8sgpt),
    ]


def _ask(auditor: Auditor, bank: Sequence[Case], settings: Settings) -> Row:
    settings.progress(f"asking {auditor.name}")
    with tempfile.TemporaryDirectory(prefix="kvestigate-bench-home-") as home:
        started = time.monotonic()
        done = subprocess.run(
            auditor.command,
            env=os.environ | {"HOME": home, "XDG_CONFIG_HOME": home, "TERM": "dumb"},
            capture_output=True,
            check=False,
            timeout=_PATIENCE,
        )
        seconds = time.monotonic() - started
    start = done.stdout.find(b"{")
    if start < 0:
        raise BenchFailed(f"{auditor.name} printed no JSON: {done.stderr.decode()[-500:]}")
    remarks = list(auditor.remarks(json.JSONDecoder().raw_decode(done.stdout[start:].decode())[0]))
    return _judged(auditor.name, bank, remarks, seconds)


def _judged(name: str, bank: Sequence[Case], remarks: Sequence[Remark], seconds: float) -> Row:
    named = told = alarms = alarmed = 0
    for case in bank:
        own = [one for one in remarks if _is_about(one, case)]
        if case.healthy:
            loud = [one for one in own if not one.advice]
            alarms += len(loud)
            alarmed += bool(loud)
            continue
        named += bool(own)
        told += _says_all(case, own)
    return Row(name, named, told, alarms, alarmed, seconds)


def _is_about(remark: Remark, case: Case) -> bool:
    """Names of objects without a namespace begin with that of the case."""
    return re.search(rf"{re.escape(case.namespace)}(?![\w.]|-[\w-]*/)", remark.about) is not None


def _says_all(case: Case, remarks: Sequence[Remark]) -> bool:
    # The name of a case says what its fault is: it must not count as an answer.
    texts = [one.text.replace(case.namespace, "NS") for one in remarks]
    return all(
        any(
            all(re.search(word.replace(case.namespace, "NS"), text, re.I) for word in told.cause)
            for text in texts
        )
        for told in case.told
    )


def _ours(report: Mapping[str, Any]) -> Iterator[Remark]:
    for finding in report["findings"]:
        effects = [f"{_named(one['subject'])}: {one['evidence']}" for one in finding["effects"]]
        text = " ".join([finding["rule"], finding["evidence"], *effects])
        subjects = [finding["subject"], *finding["objects"]]
        subjects += [one["subject"] for one in finding["effects"]]
        yield Remark(" ".join(map(_named, subjects)), text, finding["severity"] == "info")


def _named(subject: Mapping[str, str]) -> str:
    return f"{subject['kind']} {subject.get('namespace', '')}/{subject['name']}"


def _of_popeye(report: Mapping[str, Any]) -> Iterator[Remark]:
    for section in report["popeye"]["sections"]:
        for about, issues in (section.get("issues") or {}).items():
            for issue in issues:
                if issue["level"]:
                    advice = issue["level"] < _WARNING
                    yield Remark(f"{section['linter']} {about}", issue["message"], advice)


def _of_k8sgpt(report: Mapping[str, Any]) -> Iterator[Remark]:
    for result in report["results"] or ():
        text = " ".join(error["Text"] for error in result.get("error") or ())
        yield Remark(f"{result['kind']} {result['name']}", text)
