"""Label and field selectors of a list or watch, over stored items. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kvestigate.errors import BadRequest, InputError
from kvestigate.kube import field_selectors, selectors
from kvestigate.kube.field_selectors import FieldSelector
from kvestigate.kube.selectors import LabelSelector
from kvestigate.plane import objects
from kvestigate.plane.kinds.kind import Kind
from kvestigate.plane.request import Asked
from kvestigate.plane.store.model import Item


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


def selection(asked: Asked, kind: Kind) -> Selection:
    try:
        labels = selectors.parse_labels(asked.params.get("labelSelector", ""))
        fields = field_selectors.parse_fields(asked.params.get("fieldSelector", ""))
    except InputError as error:
        raise BadRequest(error.message) from None
    for term in fields.terms:
        if not kind.selects_by(term.path):
            raise BadRequest(kind.field_refusal(term.path))
    if asked.name:
        # A watch on one object's path selects it by name.
        named = field_selectors.FieldTerm("metadata.name", asked.name)
        fields = FieldSelector((*fields.terms, named))
    return Selection(kind, asked.namespace if kind.resource.namespaced else "", labels, fields)
