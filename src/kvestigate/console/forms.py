"""Forms and command lines that follow from what an operation declares. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import inspect

from kvestigate import inputs
from kvestigate.console.markup import Html, element
from kvestigate.errors import InputError
from kvestigate.operation import Effect, Operation, Param, declared

NAMESPACE = "namespace"
Values = Mapping[str, Sequence[str]]
"""What a form sent: field -> all values of that name."""

_GROUPS_OF_OPERATORS = ("fleet", "jobs", "optimize", "plane", "volumes")
"""Operations that agents may not have and operators have pages for."""
_FILES = ("FILE", "PATH")
"""What the command line calls a file of this machine."""
_ACT_AT_ONCE = ("jobs", "volumes")
"""Groups whose writes need no flag on the command line; here they need `--allow-writes`."""


def offered(operation: Operation[Any, Any], *, allow_writes: bool) -> bool:
    """Whether the console has a page for it.

    What reads is offered if agents may have it, too: it declares everything that it touches. What
    writes needs `--allow-writes` and a consequence that can be confirmed. Archives and paths of
    this machine do not fit into a form.
    """
    every = list(_declared_fields(operation))
    if any(
        _is_path(field) or (field.required and _is_from_files(field, param))
        for field, param in every
    ):
        return False
    group = operation.name.partition(".")[0]
    if operation.effect is Effect.READ:
        return operation.for_agents or group in _GROUPS_OF_OPERATORS
    return allow_writes and (operation.consequence is not None or group in _ACT_AT_ONCE)


def input_from(operation: Operation[Any, Any], values: Values, namespace: str) -> Any:
    """The input that a form means. InputError if it names files of this machine."""
    given = {field.name: _given(field, param, values) for field, param in all_fields(operation)}
    for name in values:
        if name not in given and name not in (NAMESPACE, *_OF_THE_PAGE):
            raise InputError("there is no such field", where=name)
    made = inputs.input_of(operation.input, given, namespace, _document)
    if files := operation.touches(made).files:
        raise InputError(
            f"{operation.name} reads or writes {files[0]} on this machine",
            hint=f"use the command line: kvestigate {operation.name.replace('.', ' ')}",
        )
    return made


_OF_THE_PAGE = ("context", "form-token", "confirmation", "plan", "run")
"""Fields of every form, which are none of the operation."""


def _document(text: str) -> Any:
    return inputs.one_document(text.encode(), "the form")


def _given(field: inspect.Field, param: Param, values: Values) -> Any:
    """As the command line would hand it over; None if the field was left empty."""
    kind = inputs.bare(field.type)
    texts = [text for text in values.get(field.name, ()) if text != ""]
    if isinstance(kind, inspect.BoolType):
        return True if texts else None
    if not texts:
        if field.required:
            raise InputError("a value is missing", where=label_of(field))
        return None
    if _is_listed(field, param):
        return tuple(word for text in texts for word in text.split())
    if param.parse is not None:
        try:
            return param.parse(texts[0])
        except ValueError as error:
            raise InputError(str(error), where=label_of(field)) from None
    return texts[0]


def _is_path(field: inspect.Field) -> bool:
    """Whether the value is a path of this machine, or the content of a file of it."""
    return isinstance(inputs.bare(field.type), inspect.CustomType)


def _is_from_files(field: inspect.Field, param: Param) -> bool:
    """Whether the value is read from files that are named, or is a list of documents."""
    if param.metavar in _FILES:
        return True
    several = isinstance(inputs.bare(field.type), inspect.VarTupleType | inspect.ListType)
    if not inputs.is_document(field.type) or _is_listed(field, param):
        return False
    return several or param.parse is not None


def _is_listed(field: inspect.Field, param: Param) -> bool:
    kind = inputs.bare(field.type)
    listed = isinstance(kind, inspect.VarTupleType | inspect.ListType | inspect.DictType)
    return listed and (param.parse is not None or not inputs.is_document(field.type))


def all_fields(operation: Operation[Any, Any]) -> Iterator[tuple[inspect.Field, Param]]:
    """The fields that a form has."""
    return (pair for pair in _declared_fields(operation) if not _is_from_files(*pair))


def _declared_fields(operation: Operation[Any, Any]) -> Iterator[tuple[inspect.Field, Param]]:
    """The fields of an input, and of the groups in it."""
    waiting = list(inputs.fields(operation.input))
    while waiting:
        field = waiting.pop(0)
        param, _ = declared(field.type)
        if param.is_group:
            waiting[:0] = inputs.fields(inputs.class_of(field))
        elif not param.is_namespace:
            yield field, param


def needs_input(operation: Operation[Any, Any]) -> bool:
    """Whether a field has to be filled in before it can run."""
    return any(field.required for field, _ in all_fields(operation))


def label_of(field: inspect.Field) -> str:
    return field.name.replace("_", " ")


def controls(operation: Operation[Any, Any], values: Values) -> list[Html]:
    """A labelled control for each field, required ones first."""
    every = sorted(all_fields(operation), key=lambda pair: not pair[0].required)
    return [_control(field, param, values) for field, param in every]


def namespace_control(operation: Operation[Any, Any], namespace: str) -> Html:
    label = element("label", "namespace", for_="field-namespace")
    box = element("input", type="text", name=NAMESPACE, id="field-namespace", value=namespace)
    words = element("small", "Empty: that of the context, or all where the operation can.")
    return element("div", label, box, words, class_="field")


def _control(field: inspect.Field, param: Param, values: Values) -> Html:
    name, anchor = field.name, f"field-{field.name}"
    _, described = declared(field.type)
    given = list(values.get(name, ()))
    kind = inputs.bare(field.type)
    label = element(
        "label", label_of(field), element("b", " *") if field.required else None, for_=anchor
    )
    common: dict[str, Any] = {"name": name, "id": anchor, "required": field.required}
    if isinstance(kind, inspect.BoolType):
        box = element("input", type="checkbox", value="1", checked=bool(given), **common)
    elif choices := _choices(kind):
        options = [element("option", "", value="")] if not field.required else []
        options += [
            element("option", choice, value=choice, selected=choice in given) for choice in choices
        ]
        box = element("select", *options, **common)
    elif inputs.is_document(field.type) or name == "manifest":
        box = element("textarea", "\n".join(given), rows=8, spellcheck="false", **common)
    else:
        shown = _default(field, param)
        box = element("input", type="text", value=" ".join(given), placeholder=shown, **common)
    return element(
        "div", label, box, element("small", described) if described else None, class_="field"
    )


def _choices(kind: inspect.Type) -> list[str]:
    match kind:
        case inspect.LiteralType():
            return [str(value) for value in kind.values]
        case inspect.EnumType():
            return [str(member.value) for member in kind.cls]
    return []


def _default(field: inspect.Field, param: Param) -> str | None:
    if field.default in (msgspec.NODEFAULT, None, "", (), False):
        return param.metavar.lower() or None
    return param.show(getattr(field.default, "value", field.default))


def command_line(
    operation: Operation[Any, Any], values: Values, context: str, namespace: str = ""
) -> str:
    """The same on the command line, but for flags that confirm."""
    words = ["kvestigate", *(["--context", context] if context else [])]
    words += ["-n", namespace] if namespace else []
    words += operation.name.replace("_", "-").split(".")
    behind: list[str] = []
    for field, param in all_fields(operation):
        texts = [text for text in values.get(field.name, ()) if text != ""]
        if not texts:
            continue
        if _is_listed(field, param):
            texts = [word for text in texts for word in text.split()]
        if param.argument:
            behind += texts
            continue
        flag = next((name for name in param.flags if name.startswith("--")), "")
        flag = flag or f"--{field.name.replace('_', '-')}"
        if inputs.is_document(field.type) or "\n" in texts[0]:
            texts = ["FILE"]
        for text in texts:
            words += (
                [flag] if isinstance(inputs.bare(field.type), inspect.BoolType) else [flag, text]
            )
    return shlex.join([*words, *behind])
