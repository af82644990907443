"""The entries of a kubeconfig, read so that one that is broken does not hide the others. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from kvestigate.client.kubeconfig import (
    Cluster,
    Context,
    User,
    check_kind,
    read_cluster,
    read_context,
    read_user,
)
from kvestigate.errors import ConfigError
from kvestigate.kube.documents import Section, first_document, type_name

T = TypeVar("T", Cluster, User, Context)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read."""

    subject: str
    where: str
    error: ConfigError


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """One item of `clusters`, `users` or `contexts`."""

    name: str
    file: Path
    section: Section
    value: T | None
    """None when its fields cannot be read."""

    @property
    def label(self) -> str:
        """`user "admin"`"""
        return self.section.label


@dataclass(slots=True)
class Entries:
    """Everything in one or more files, first to last, repetitions included."""

    clusters: list[Entry[Cluster]] = field(default_factory=list)
    users: list[Entry[User]] = field(default_factory=list)
    contexts: list[Entry[Context]] = field(default_factory=list)
    current: list[tuple[str, str]] = field(default_factory=list)
    """Each `current-context` that is set, and where."""
    tops: list[Section] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def current_context(self) -> str:
        return self.current[0][0] if self.current else ""

    def read(self, path: Path, data: bytes) -> None:
        """Add what is in one file."""
        file = str(path)
        try:
            document = first_document(data, file)
            if document.value is None:
                return
            if not isinstance(document.value, dict):
                raise ConfigError(
                    f"{file}: not a kubeconfig: a mapping was expected, "
                    f"this is {type_name(document.value)}"
                )
            top = Section(document, (), "", document.value)
            check_kind(top)
            if current := top.text("current-context"):
                self.current.append((current, top.where("current-context")))
        except ConfigError as error:
            self.problems.append(Problem(file, file, error))
            return
        self.tops.append(top)
        self.clusters += self._entries(top, "clusters", path, read_cluster)
        self.users += self._entries(top, "users", path, read_user)
        self.contexts += self._entries(top, "contexts", path, read_context)

    def _entries(
        self, top: Section, key: str, path: Path, read: Callable[[str, Section], T]
    ) -> Iterator[Entry[T]]:
        items = top.values.get(key)
        if items is None:
            return
        if not isinstance(items, list):
            error = top.error(f"{key} must be a list, not {type_name(items)}", key)
            self.problems.append(Problem(key, top.where(key), error))
            return
        for index, item in enumerate(items):
            section = Section(top.document, (key, index), f"{key}[{index}]", {})
            try:
                name, body = _named(section, key.removesuffix("s"), item)
            except ConfigError as error:
                self.problems.append(Problem(section.label, section.where(), error))
                continue
            yield Entry(name, path, body, self._value(name, body, read))

    def _value(self, name: str, body: Section, read: Callable[[str, Section], T]) -> T | None:
        try:
            return read(name, body)
        except ConfigError as error:
            self.problems.append(Problem(body.label, body.where(), error))
            return None


def _named(section: Section, singular: str, item: Any) -> tuple[str, Section]:
    if not isinstance(item, dict):
        raise section.error(f"must be a mapping, not {type_name(item)}")
    entry = Section(section.document, section.path, section.label, item)
    name = entry.text("name")
    if not name:
        raise entry.error("name is missing")
    label = f'{singular} "{name}"'
    return name, entry.section(singular, label) or Section(entry.document, entry.path, label, {})
