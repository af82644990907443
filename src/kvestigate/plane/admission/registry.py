"""The admission rules, in the order in which they see a write."""

from __future__ import annotations

from kvestigate.plane.admission.escalation import Escalation
from kvestigate.plane.admission.interface import Rule, Write
from kvestigate.plane.admission.namespaces import NamespaceLifecycle
from kvestigate.plane.admission.service_accounts import ServiceAccounts

RULES: tuple[Rule, ...] = (NamespaceLifecycle(), ServiceAccounts(), Escalation())


def admit(write: Write) -> None:
    for rule in RULES:
        rule.admit(write)
