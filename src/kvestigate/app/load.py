"""Apps from files and back: every mistake is told with its field, its value and the way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvestigate.app.check import file_name, problems
from kvestigate.app.spec import AppSpec, ConfigFile
from kvestigate.errors import InputError
from kvestigate.kube.documents import Mistakes, Problem, line_of, read, written
from kvestigate.kube.yaml_documents import load
from kvestigate.kube.yaml_scalars import Dialect

KEY = "app"
LARGEST = 1 << 20
"""Bytes of an App or of one of its config files: what an API server takes as one object."""


class AppLoadError(InputError):
    """A file that is no App; `problems` has all that is wrong with it."""

    def __init__(
        self, message: str, problems: Sequence[Problem], *, where: str, hint: str | None
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.problems = tuple(problems)


def load_app(path: Path) -> AppSpec:
    """The App in a file, its config files read. AppLoadError tells the first mistake."""
    try:
        return _resolved_app(_bytes(path), str(path), path.parent)
    except Mistakes as mistakes:
        raise _first_told(str(path), mistakes.problems) from None


def load_app_friendly(path: Path) -> AppSpec:
    """The same, for people: AppLoadError tells all mistakes, with their lines."""
    return read_app_friendly(_bytes(path), str(path), path.parent)


def read_app_friendly(data: bytes, source: str, base: Path) -> AppSpec:
    """The same for what is not in a file; config files are relative to `base`."""
    try:
        return _resolved_app(data, source, base)
    except Mistakes as mistakes:
        raise _all_told(data, source, mistakes.problems) from None


def _resolved_app(data: bytes, source: str, base: Path) -> AppSpec:
    return _with_files(parse_app(data, source), base)


def _first_told(where: str, found: Sequence[Problem]) -> AppLoadError:
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return AppLoadError(f"{found[0]}{more}", found, where=where, hint=found[0].hint or None)


def _all_told(data: bytes, source: str, found: Sequence[Problem]) -> AppLoadError:
    places = [f"{source}:{_line(data, problem.path)}" for problem in found]
    if len(found) == 1:
        [only] = found
        return AppLoadError(str(only), found, where=places[0], hint=only.hint or None)
    lines = [f"{len(found)} mistakes"]
    for place, problem in zip(places, found, strict=True):
        lines.append(f"{place}: {problem}" + (f"; {problem.hint}" if problem.hint else ""))
    hint = "correct them, and `kvestigate app render` shows what the App means"
    return AppLoadError("\n".join(lines), found, where=source, hint=hint)


def parse_app(text: str | bytes, source: str = "-") -> AppSpec:
    """PURE. The App that a text is; its config files are not read. Raises Mistakes."""
    documents = load(text, source, dialect=Dialect.PYTHON)
    if len(documents) != 1:
        raise InputError(f"holds {len(documents)} documents, not one App", where=source)
    document = documents[0].value
    if not isinstance(document, dict) or KEY not in document:
        raise Mistakes([Problem(KEY, "the field is required", _outline(document))])
    if extra := [key for key in document if key != KEY]:
        raise Mistakes([Problem(key, "no such field", f"all is under {KEY}:") for key in extra])
    spec = read(AppSpec, document[KEY])
    if found := problems(spec):
        raise Mistakes(found)
    return spec


def _outline(document: Any) -> str:
    if isinstance(document, dict) and "metadata" in document:
        return f"put all of it under {KEY}:"
    return f"an App is `{KEY}: {{metadata: {{name: web}}, command: [...], ...}}`"


def dump_app(spec: AppSpec) -> str:
    """YAML that loads as the same App; what has its default is left out."""
    from kvestigate.render.encode import to_yaml

    return to_yaml({KEY: written(spec)})


def resolve_shared_config_files(spec: AppSpec, base: Path) -> AppSpec:
    """The App with its config files read, so that it means the same wherever it goes.

    `base` is where relative paths begin. AppLoadError names a file that cannot be read.
    """
    try:
        return _with_files(spec, base)
    except Mistakes as mistakes:
        raise _first_told(str(base), mistakes.problems) from None


def _with_files(spec: AppSpec, base: Path) -> AppSpec:
    wrong: list[Problem] = []
    files = tuple(
        _resolved(file, base, f"shared_config_files[{index}].local", wrong)
        for index, file in enumerate(spec.shared_config_files)
    )
    if wrong:
        raise Mistakes(wrong)
    return replace(spec, shared_config_files=files)


def _resolved(file: ConfigFile, base: Path, path: str, wrong: list[Problem]) -> ConfigFile:
    if file.content is not None:
        return file
    try:
        content = _bytes(base / file.local).decode()
    except UnicodeDecodeError as error:
        wrong.append(Problem(path, f"{file.local!r}: byte {error.start} is not UTF-8"))
    except InputError as error:
        wrong.append(Problem(path, error.message, f"it is looked for in {base}"))
    else:
        return ConfigFile(name=file_name(file), content=content)
    return file


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if len(data) > LARGEST:
        raise InputError(f"larger than {LARGEST >> 20} MiB", where=str(path))
    return data


def _line(data: bytes, path: str) -> int:
    """The line of a field below `app:`, or of one that was written beside it."""
    return max(line_of(data, f"{KEY}.{path}"), line_of(data, path))
