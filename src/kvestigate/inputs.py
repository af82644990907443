"""From texts that people typed to the input of an operation, by what its fields declare.

The command line and the console share this: a field is text, a number, a switch, a choice or a list
of them; anything larger is a document in YAML or JSON. What is left empty keeps its default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_type_hints

import msgspec
from msgspec import inspect

from kvestigate.errors import InputError
from kvestigate.operation import declared, without_none

Document = Callable[[str], Any]
"""From what was given for a large value, such as a path, to the value."""


def fields(input: type) -> Iterator[inspect.Field]:
    info = inspect.type_info(input)
    assert isinstance(info, inspect.DataclassType | inspect.StructType), input
    yield from info.fields


def input_of(made_of: type, values: Mapping[str, Any], namespace: str, document: Document) -> Any:
    """The input that the values, by field, mean; `namespace` is that of `-n`."""
    types = get_type_hints(made_of, include_extras=True)
    given: dict[str, Any] = {}
    for field in fields(made_of):
        param, _ = declared(field.type)
        if param.is_group:
            given[field.name] = input_of(class_of(field), values, namespace, document)
            continue
        value = namespace if param.is_namespace else values.get(field.name)
        if value is None or value == () or (param.is_namespace and not value):
            continue
        if param.parse is None:
            value = _converted(value, types[field.name], field, document)
        elif isinstance(value, tuple):
            value = param.parse(value)
        given[field.name] = value
    return made_of(**given)


def _converted(value: Any, kind: Any, field: inspect.Field, document: Document) -> Any:
    if is_document(field.type):
        value = document(value)
    try:
        return msgspec.convert(value, kind, strict=False, dec_hook=lambda cls, text: cls(text))
    except msgspec.ValidationError as error:
        raise InputError(str(error), where=f"--{field.name.replace('_', '-')}") from None


def bare(info: inspect.Type) -> inspect.Type:
    """A type without its annotations and without None."""
    while True:
        if isinstance(info, inspect.Metadata):
            info = info.type
        elif (inner := without_none(info)) is not None:
            info = inner
        else:
            return info


def class_of(field: inspect.Field) -> type:
    kind = bare(field.type)
    assert isinstance(kind, inspect.DataclassType | inspect.StructType), field.name
    return kind.cls


def is_document(info: inspect.Type) -> bool:
    """Whether a value is more than a person would type on a command line."""
    kind = bare(info)
    if isinstance(kind, inspect.VarTupleType | inspect.ListType):
        kind = bare(kind.item_type)
    return isinstance(
        kind, inspect.DataclassType | inspect.StructType | inspect.DictType | inspect.AnyType
    )


def one_document(data: bytes, source: str) -> Any:
    """The value of the only document in `data`."""
    from kvestigate.kube.yaml_documents import load  # few commands read one
    from kvestigate.kube.yaml_scalars import Dialect

    documents = load(data, source, dialect=Dialect.PYTHON)
    if len(documents) != 1:
        raise InputError(f"has {len(documents)} documents, not one", where=source)
    return documents[0].value
