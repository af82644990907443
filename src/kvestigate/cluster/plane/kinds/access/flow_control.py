"""FlowSchemas and PriorityLevelConfigurations: they get their defaults and are kept as they are,
since a plane queues no requests. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Kind, Object


class FlowSchemaKind(Kind):
    counts_generations = True

    def default(self, obj: Object) -> None:
        if not obj["spec"].get("matchingPrecedence"):
            obj["spec"]["matchingPrecedence"] = 1000


class PriorityLevelKind(Kind):
    counts_generations = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        if "exempt" in spec:
            spec["exempt"].setdefault("nominalConcurrencyShares", 0)
            spec["exempt"].setdefault("lendablePercent", 0)
        if "limited" in spec:
            limited = spec["limited"]
            limited.setdefault("nominalConcurrencyShares", 30)
            limited.setdefault("lendablePercent", 0)
            queuing = limited["limitResponse"].get("queuing")
            if queuing is not None:
                defaults = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
                queuing |= {name: queuing.get(name) or it for name, it in defaults.items()}
