"""The manifests under deploy/collect say what the program does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kvestigate.cli.collect import watch
from kvestigate.collect.documents import Reading
from kvestigate.collect.kinds import DEFAULT, chosen
from kvestigate.collect.record import Record
from kvestigate.kube import builtins
from kvestigate.kube.yaml_documents import load

KIT = Path(__file__).parents[2] / "deploy" / "collect"


def manifests(name: str) -> dict[str, dict[str, Any]]:
    """By kind: each is there once."""
    return {it.value["kind"]: it.value for it in load((KIT / name).read_bytes(), name)}


def test_the_role_is_what_the_kinds_need_and_no_more() -> None:
    allowed = {
        (group, resource, verb)
        for rule in manifests("rbac.yaml")["ClusterRole"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    needed = set()
    for kind in chosen(DEFAULT):
        resource = builtins.registry().for_kind(kind.api_version, kind.name)
        assert resource is not None
        needed |= {(resource.group, resource.plural, verb) for verb in ("list", "watch")}
    assert allowed == needed


def test_the_account_is_bound_and_used() -> None:
    rbac = manifests("rbac.yaml")
    account = rbac["ServiceAccount"]["metadata"]
    (subject,) = rbac["ClusterRoleBinding"]["subjects"]
    assert (subject["namespace"], subject["name"]) == (account["namespace"], account["name"])
    pod = manifests("deployment.yaml")["Deployment"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account["name"]


def test_the_arguments_are_taken_and_the_probes_are_served() -> None:
    (container,) = manifests("deployment.yaml")["Deployment"]["spec"]["template"]["spec"][
        "containers"
    ]
    command, *arguments = container["args"]
    context = click.Context(watch, info_name=command, obj={})
    watch.parse_args(context, list(arguments))
    assert context.params["emit_initial"]
    port = int(context.params["listen"].rpartition(":")[2])
    assert [it["containerPort"] for it in container["ports"]] == [port]
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_the_collector_collects_itself() -> None:
    (record,) = Reading().records([str(KIT / "deployment.yaml")])
    assert isinstance(record, Record)
    assert (record.workload_name, record.volume_types) == (
        "k8s-collect",
        ("persistentVolumeClaim",),
    )
