"""Label and field selectors of a list or watch, over stored items. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.store.model import Item
from kvestigate.errors import BadRequest, InputError
from kvestigate.kube import field_selectors, selectors
from kvestigate.kube.field_selectors import FieldSelector
from kvestigate.kube.selectors import LabelSelector


@dataclass(frozen=True, slots=True)
class Selection:
    kind: Kind
    namespace: str
    """Empty: all namespaces."""
    labels: LabelSelector
    fields: FieldSelector

    @property
    def everything(self) -> bool:
        """Whether every item in the namespace's scope is selected."""
        return self.labels.selects_everything and self.fields.selects_everything

    def has(self, item: Item) -> bool:
        if self.namespace and item.namespace != self.namespace:
            return False
        if not self.labels.matches(item.labels):
            return False
        return self.fields.selects_everything or self.fields.matches(
            objects.fields_of(item, self.kind)
        )


def _labels(text: str) -> LabelSelector:
    try:
        return selectors.parse_labels(text)
    except InputError as error:
        raise BadRequest(f"unable to parse requirement: {_bare(error)}") from None


def _fields(text: str) -> FieldSelector:
    try:
        return field_selectors.parse_fields(text)
    except InputError as error:
        raise BadRequest(f"invalid selector: '{text}'; {_bare(error)}") from None


def _bare(error: InputError) -> str:
    """The problem without its position, which kube-apiserver does not report."""
    return error.message.removeprefix(f"{error.where}: ")


MOST_REQUIREMENTS = 256
"""Of the selectors of a list or watch. Each watch puts all of them to each change of an object."""


def selection(info: RequestInfo, kind: Kind) -> Selection:
    labels = _labels(info.params.get("labelSelector", ""))
    fields = _fields(info.params.get("fieldSelector", ""))
    if len(labels.requirements) + len(fields.terms) > MOST_REQUIREMENTS:
        raise BadRequest(f"the selectors have more than {MOST_REQUIREMENTS} requirements")
    for term in fields.terms:
        if not kind.selects_by(term.path):
            raise BadRequest(kind.field_refusal(term.path))
    if info.name:
        # A watch on one object's path selects it by name.
        named = field_selectors.FieldTerm("metadata.name", info.name)
        fields = FieldSelector((*fields.terms, named))
    return Selection(kind, info.namespace if kind.resource.namespaced else "", labels, fields)
