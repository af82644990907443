"""Columns of the kinds that need no thought: ConfigMaps, Secrets, ServiceAccounts. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import AGE, NAME, Cells, Columns, age, strings


def _config_map(obj: Object, now: float) -> Cells:
    entries = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [obj["metadata"]["name"], entries, age(obj, now)]


def _secret(obj: Object, now: float) -> Cells:
    return [
        obj["metadata"]["name"],
        obj.get("type", ""),
        len(obj.get("data") or ()),
        age(obj, now),
    ]


def _account(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], age(obj, now)]


CONFIG_MAPS = Columns((NAME, *strings("Data", "Age")), _config_map)
SECRETS = Columns((NAME, *strings("Type", "Data", "Age")), _secret)
SERVICE_ACCOUNTS = Columns((NAME, AGE), _account)
