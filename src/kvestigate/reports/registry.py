"""The reports, in the order in which an audit shows them. A new one is one line here."""

from __future__ import annotations

from kvestigate.errors import UsageError, nearest
from kvestigate.reports import cost, gpu, metrics, network, nodes, storage, workloads
from kvestigate.reports.model import Report

REPORTS: tuple[Report, ...] = (
    nodes.REPORT,
    metrics.REPORT,
    gpu.REPORT,
    cost.REPORT,
    workloads.REPORT,
    network.REPORT,
    storage.REPORT,
)


def find(name: str) -> Report:
    """The report of that name; raises `UsageError` that suggests a similar name."""
    for report in REPORTS:
        if report.name == name:
            return report
    names = [report.name for report in REPORTS]
    near = nearest(name, names)
    raise UsageError(
        f"there is no report {name!r}",
        hint=(f"did you mean {near!r}? " if near else "") + f"the reports are: {', '.join(names)}",
    )
