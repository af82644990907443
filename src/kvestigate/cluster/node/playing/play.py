"""Plays the command of a container: what it prints when, and when and how it ends. Pure.

Shells and their small tools are played. Any other program is taken for the container's own work,
which goes on until it is stopped; so does a loop that would not end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kvestigate.cluster.node.playing import grammar
from kvestigate.cluster.node.playing.grammar import Block, Chain, For, If, Loop, Simple, Unplayable

STDOUT, STDERR = "stdout", "stderr"
_SHELLS = frozenset(("sh", "bash", "ash", "dash"))
_MOST_STEPS = 2_000
_MOST_LINES = 1_000
_ROUNDS = 3
"""Rounds of a loop that are played before it is taken for endless."""
_VARIABLE = re.compile(
    r"\$(?:(?P<name>[A-Za-z_]\w*|[?#@*$!0-9])|\{(?P<braced>[A-Za-z_]\w*)(?P<default>:?[-=?+][^}]*)?\})"
)
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_EXISTING = frozenset(("/", "/bin", "/bin/sh", "/dev/null", "/etc", "/etc/hosts", "/proc", "/tmp"))
_QUIET = frozenset(
    (
        ":",
        "cd",
        "chmod",
        "chown",
        "cp",
        "ln",
        "mkdir",
        "mv",
        "rm",
        "sync",
        "touch",
        "trap",
        "true",
        "ulimit",
        "umask",
        "unset",
    )
)


@dataclass(frozen=True, slots=True)
class Line:
    at: float
    """Seconds after the start."""
    stream: str
    text: str


@dataclass(frozen=True, slots=True)
class Performance:
    """What a container does from its start on."""

    lines: tuple[Line, ...] = ()
    ends_at: float | None = None
    """Seconds after the start; None if it runs until it is stopped."""
    code: int = 0


class _Endless(Exception):
    """From here on it runs until it is stopped."""


class _Exit(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


def play(argv: Sequence[str], env: Mapping[str, str], mounts: Sequence[str] = ()) -> Performance:
    """`mounts` are the paths that exist because a volume is there."""
    stage = _Stage(dict(env), tuple(mounts))
    try:
        if not argv:
            raise _Endless
        code = stage.run(list(argv))
    except _Exit as ending:
        code = ending.code
    except (_Break, _Continue):
        code = 0
    except (_Endless, Unplayable, RecursionError):
        return Performance(tuple(stage.lines))
    return Performance(tuple(stage.lines), stage.now, code)


@dataclass(slots=True)
class _Stage:
    """The state of a script that is being played."""

    env: dict[str, str]
    mounts: tuple[str, ...]
    now: float = 0.0
    lines: list[Line] = field(default_factory=list)
    code: int = 0
    strict: bool = False
    """After `set -e`."""
    steps: int = 0
    unchecked: int = 0
    """Within how many conditions: there, failures do not end a strict script."""

    def say(self, text: str, stream: str = STDOUT) -> None:
        for line in text.split("\n"):
            if len(self.lines) < _MOST_LINES:
                self.lines.append(Line(self.now, stream, line))

    # Running.

    def run(self, argv: list[str], stream: str = STDOUT) -> int:
        """Run one command; returns its exit code."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise _Endless
        name = argv[0].rpartition("/")[2]
        arguments = argv[1:]
        if name in _SHELLS:
            return self._shell(name, arguments)
        if name in _QUIET:
            return 0
        known = _COMMANDS.get(name)
        if known is None:
            raise _Endless
        return known(self, arguments, stream)

    def _shell(self, name: str, arguments: list[str]) -> int:
        while arguments and arguments[0].startswith("-"):
            flags = arguments.pop(0)
            if flags.startswith("--"):
                continue
            self.strict = self.strict or "e" in flags
            if "c" in flags:
                if not arguments:
                    self.say(f"{name}: -c requires an argument", STDERR)
                    return 2
                return self.block(grammar.parse(arguments[0]))
        if arguments:
            raise _Endless  # a script that only the image has
        return 0  # its input is empty

    def block(self, block: Block) -> int:
        for chain in block.chains:
            self.code = self._chain(chain)
        return self.code

    def _chain(self, chain: Chain) -> int:
        code, last = 0, len(chain.commands) - 1
        for index, (operator, negated, command) in enumerate(chain.commands):
            if (operator == "&&" and code) or (operator == "||" and not code):
                continue
            checked = negated or index < last
            self.unchecked += checked
            try:
                code = self.code = self._command(command)
            finally:
                self.unchecked -= checked
            if negated:
                code = self.code = int(not code)
            elif code and self.strict and not self.unchecked and index == last:
                raise _Exit(code)
        return code

    def _command(self, command: grammar.Command) -> int:
        if isinstance(command, Simple):
            return self._simple(command)
        if isinstance(command, If):
            return self._if(command)
        if isinstance(command, Loop):
            return self._loop(command)
        if isinstance(command, For):
            return self._for(command)
        return self.block(command)

    def _condition(self, block: Block) -> bool:
        self.unchecked += 1
        try:
            return self.block(block) == 0
        finally:
            self.unchecked -= 1

    def _if(self, command: If) -> int:
        for condition, body in command.branches:
            if self._condition(condition):
                return self.block(body)
        self.code = 0
        return self.block(command.otherwise)

    def _loop(self, command: Loop) -> int:
        for _ in range(_ROUNDS):
            if self._condition(command.condition) is command.until:
                return 0
            try:
                self.block(command.body)
            except _Break:
                return 0
            except _Continue:
                continue
        raise _Endless

    def _for(self, command: For) -> int:
        values = [value for word in command.values for value in self._expanded(word)]
        for value in values:
            self.env[command.name] = value
            try:
                self.block(command.body)
            except _Break:
                break
            except _Continue:
                continue
        return self.code

    def _simple(self, command: Simple) -> int:
        words = [text for word in command.words for text in self._expanded(word)]
        while words and (match := re.fullmatch(r"([A-Za-z_]\w*)=(.*)", words[0], re.DOTALL)):
            self.env[match[1]] = match[2]
            words.pop(0)
        if not words:
            return 0
        before = len(self.lines)
        code = self.run(words, STDERR if command.to_stderr else STDOUT)
        if command.silent:
            del self.lines[before:]
        return code

    # Words.

    def _expanded(self, word: grammar.Word) -> list[str]:
        """A word as the words that it becomes: unquoted variables are split at spaces."""
        texts = [self._part(part) for part in word.parts]
        if any(part.quoted for part in word.parts) or not any("$" in p.text for p in word.parts):
            return ["".join(texts)]
        return "".join(texts).split()

    def _part(self, part: grammar.Part) -> str:
        text = part.text
        if not part.expands:
            return text
        if "$(" in text or "`" in text:
            raise Unplayable
        text = _VARIABLE.sub(self._value, text)
        return re.sub(r'\\([$"`\\])', r"\1", text) if part.quoted else text

    def _value(self, match: re.Match[str]) -> str:
        name = match["name"] or match["braced"]
        special = {"?": str(self.code), "#": "0", "@": "", "*": "", "$": "1", "0": "sh", "!": ""}
        value = special.get(name, self.env.get(name, ""))
        default = match["default"] or ""
        operator = default.lstrip(":")[:1]
        fallback = default.lstrip(":")[1:]
        if operator in ("-", "=") and not value:
            return fallback
        if operator == "+" and value:
            return fallback
        if operator == "?" and not value:
            self.say(f"sh: {name}: {fallback or 'parameter not set'}", STDERR)
            raise _Exit(2)
        return value

    def exists(self, path: str) -> bool:
        return path in _EXISTING or any(
            path == mount or path.startswith(f"{mount.rstrip('/')}/") for mount in self.mounts
        )


# The commands.


def _echo(stage: _Stage, arguments: list[str], stream: str) -> int:
    while arguments and arguments[0] in ("-n", "-e", "-ne", "-en"):
        arguments = arguments[1:]
    stage.say(" ".join(arguments), stream)
    return 0


def _printf(stage: _Stage, arguments: list[str], stream: str) -> int:
    if not arguments:
        return 2
    values = iter(arguments[1:])
    text = re.sub(r"%[-\d.]*[sdif]", lambda _: next(values, ""), arguments[0])
    text = text.replace("\\n", "\n").replace("\\t", "\t").replace("%%", "%")
    stage.say(text.removesuffix("\n"), stream)
    return 0


def _sleep(stage: _Stage, arguments: list[str], stream: str) -> int:
    seconds = 0.0
    for argument in arguments:
        match = _DURATION.fullmatch(argument)
        if match is None and argument not in ("inf", "infinity"):
            stage.say(f"sleep: invalid number '{argument}'", STDERR)
            return 1
        if match is None:
            raise _Endless
        seconds += float(match[1]) * _UNITS[match[2]]
    stage.now += seconds
    return 0


def _exit(stage: _Stage, arguments: list[str], stream: str) -> int:
    text = arguments[0] if arguments else str(stage.code)
    if not re.fullmatch(r"-?\d{1,9}", text):
        stage.say(f"sh: exit: Illegal number: {text}", STDERR)
        raise _Exit(2)
    raise _Exit(int(text) & 0xFF)


def _exec(stage: _Stage, arguments: list[str], stream: str) -> int:
    if not arguments:
        return 0
    raise _Exit(stage.run(arguments, stream))


def _export(stage: _Stage, arguments: list[str], stream: str) -> int:
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if equals:
            stage.env[name] = value
    return 0


def _set(stage: _Stage, arguments: list[str], stream: str) -> int:
    for flags in arguments:
        if flags.startswith(("-", "+")) and "e" in flags:
            stage.strict = flags[0] == "-"
    return 0


def _cat(stage: _Stage, arguments: list[str], stream: str) -> int:
    code = 0
    for path in arguments:
        if not stage.exists(path):
            stage.say(f"cat: can't open '{path}': No such file or directory", STDERR)
            code = 1
    return code


def _ls(stage: _Stage, arguments: list[str], stream: str) -> int:
    code = 0
    for path in arguments:
        if not path.startswith("-") and not stage.exists(path):
            stage.say(f"ls: {path}: No such file or directory", STDERR)
            code = 1
    return code


def _printenv(stage: _Stage, arguments: list[str], stream: str) -> int:
    if not arguments:
        for name, value in sorted(stage.env.items()):
            stage.say(f"{name}={value}", stream)
        return 0
    if arguments[0] not in stage.env:
        return 1
    stage.say(stage.env[arguments[0]], stream)
    return 0


def _test(stage: _Stage, arguments: list[str], stream: str) -> int:
    if arguments and arguments[-1] in ("]", "]]"):
        arguments = arguments[:-1]
    if arguments and arguments[0] == "!":
        return int(not _test(stage, arguments[1:], stream))
    if len(arguments) <= 1:
        return int(not (arguments and arguments[0]))
    if len(arguments) == 2:
        return int(not _unary(stage, *arguments))
    if len(arguments) == 3:
        return int(not _binary(*arguments))
    raise Unplayable


def _unary(stage: _Stage, operator: str, operand: str) -> bool:
    if operator == "-z":
        return not operand
    if operator == "-n":
        return bool(operand)
    if operator in ("-e", "-f", "-d", "-r", "-s", "-w", "-x"):
        return stage.exists(operand)
    raise Unplayable


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}


def _binary(left: str, operator: str, right: str) -> bool:
    if operator in ("=", "=="):
        return left == right
    if operator == "!=":
        return left != right
    compare = _COMPARISONS.get(operator)
    if compare is None or not all(re.fullmatch(r"-?\d{1,18}", text) for text in (left, right)):
        raise Unplayable
    return compare(int(left), int(right))


def _break(stage: _Stage, arguments: list[str], stream: str) -> int:
    raise _Break


def _continue(stage: _Stage, arguments: list[str], stream: str) -> int:
    raise _Continue


def _say(text: str) -> Callable[[_Stage, list[str], str], int]:
    def command(stage: _Stage, arguments: list[str], stream: str) -> int:
        stage.say(text, stream)
        return 0

    return command


def _hostname(stage: _Stage, arguments: list[str], stream: str) -> int:
    stage.say(stage.env.get("HOSTNAME", "localhost"), stream)
    return 0


_COMMANDS: dict[str, Callable[[_Stage, list[str], str], int]] = {
    "[": _test,
    "[[": _test,
    "break": _break,
    "cat": _cat,
    "continue": _continue,
    "echo": _echo,
    "env": _printenv,
    "exec": _exec,
    "exit": _exit,
    "export": _export,
    "false": lambda *_: 1,
    "hostname": _hostname,
    "ls": _ls,
    "printenv": _printenv,
    "printf": _printf,
    "pwd": _say("/"),
    "return": _exit,
    "set": _set,
    "sleep": _sleep,
    "test": _test,
    "whoami": _say("root"),
}

PROGRAMS = ("cat", "echo", "env", "false", "hostname", "ls", "pwd", "sh", "sleep", "test", "true")
"""What an image has: of all that is played, what is worth a mention."""
