"""Shell scripts as far as they can be played: words, commands, lists, `if`, loops. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

_OPERATORS = ("&&", "||", ";;", ";", "|", "&", "\n", "(", ")")
_REDIRECTION = re.compile(r"(\d*|&)(>>|>&|>|<<|<&|<)\s*")
_KEYWORDS = frozenset(
    ("if", "then", "elif", "else", "fi", "while", "until", "for", "in", "do", "done", "{", "}", "!")
)
_LONGEST = 64 * 1024


class Unplayable(Exception):
    """The script has something that is not understood here."""


@dataclass(frozen=True, slots=True)
class Part:
    text: str
    expands: bool = True
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Word:
    parts: tuple[Part, ...]

    @property
    def bare(self) -> str:
        """The text of a word without quotes; empty for others."""
        quoted = any(part.quoted for part in self.parts)
        return "" if quoted else "".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class Simple:
    words: tuple[Word, ...]
    to_stderr: bool = False
    silent: bool = False
    """Whether its output goes to a file."""


@dataclass(frozen=True, slots=True)
class If:
    branches: tuple[tuple[Block, Block], ...]
    otherwise: Block


@dataclass(frozen=True, slots=True)
class Loop:
    condition: Block
    body: Block
    until: bool


@dataclass(frozen=True, slots=True)
class For:
    name: str
    values: tuple[Word, ...]
    body: Block


Command: TypeAlias = "Simple | If | Loop | For | Block"


@dataclass(frozen=True, slots=True)
class Chain:
    """Commands with `&&` and `||` between them."""

    commands: tuple[tuple[str, bool, Command], ...]
    """(operator before it, whether its result is negated, command)"""


@dataclass(frozen=True, slots=True)
class Block:
    chains: tuple[Chain, ...] = ()


@dataclass(frozen=True, slots=True)
class Operator:
    text: str


@dataclass(frozen=True, slots=True)
class Redirection:
    descriptor: str
    operator: str


Token = Operator | Word | Redirection


def parse(script: str) -> Block:
    """Raises Unplayable."""
    if len(script) > _LONGEST:
        raise Unplayable
    parser = _Parser(list(_tokens(script)))
    block = parser.block(())
    if parser.peek() is not None:
        raise Unplayable
    return block


def _tokens(script: str) -> Iterator[Token]:
    at = 0
    while at < len(script):
        char = script[at]
        if char in " \t" or script.startswith("\\\n", at):
            at += 2 if char == "\\" else 1
        elif char == "#":
            at = (script + "\n").find("\n", at)
        elif (match := _REDIRECTION.match(script, at)) is not None:
            yield Redirection(match[1], match[2])
            at = match.end()
        elif (operator := next((op for op in _OPERATORS if script.startswith(op, at)), "")) != "":
            yield Operator(operator)
            at += len(operator)
        else:
            word, at = _word(script, at)
            yield word


def _word(script: str, at: int) -> tuple[Word, int]:
    parts: list[Part] = []
    while at < len(script) and script[at] not in " \t\n;|&()<>":
        char = script[at]
        if char == "'":
            end = _find(script, "'", at + 1)
            parts.append(Part(script[at + 1 : end], expands=False, quoted=True))
            at = end + 1
        elif char == '"':
            end = _closing_quote(script, at + 1)
            parts.append(Part(script[at + 1 : end], quoted=True))
            at = end + 1
        elif char == "\\":
            parts.append(Part(script[at + 1 : at + 2], expands=False, quoted=True))
            at += 2
        elif script.startswith("$(", at):
            end = _closing_bracket(script, at + 2)
            parts.append(Part(script[at : end + 1]))
            at = end + 1
        elif char == "`":
            raise Unplayable
        else:
            end = at + 1
            while end < len(script) and script[end] not in " \t\n;|&()<>'\"\\`$":
                end += 1
            parts.append(Part(script[at:end]))
            at = end
    return Word(tuple(parts)), at


def _find(script: str, text: str, at: int) -> int:
    end = script.find(text, at)
    if end < 0:
        raise Unplayable
    return end


def _closing_quote(script: str, at: int) -> int:
    while at < len(script) and script[at] != '"':
        at += 2 if script[at] == "\\" else 1
    if at >= len(script):
        raise Unplayable
    return at


def _closing_bracket(script: str, at: int) -> int:
    depth = 1
    while at < len(script):
        depth += {"(": 1, ")": -1}.get(script[at], 0)
        if not depth:
            return at
        at += 1
    raise Unplayable


@dataclass(slots=True)
class _Parser:
    tokens: list[Token]
    at: int = 0
    depth: int = 0

    def peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def block(self, ends: tuple[str, ...]) -> Block:
        """Everything up to one of the keywords, which stays."""
        self.depth += 1
        if self.depth > 20:
            raise Unplayable
        chains: list[Chain] = []
        while True:
            while self.peek() in (Operator(";"), Operator("\n")):
                self.at += 1
            token = self.peek()
            if token is None or token == Operator(")") or self._keyword() in ends:
                self.depth -= 1
                return Block(tuple(chains))
            chains.append(self._chain())

    def _keyword(self) -> str:
        token = self.peek()
        bare = token.bare if isinstance(token, Word) else ""
        return bare if bare in _KEYWORDS else ""

    def _expect(self, keyword: str) -> None:
        if self._keyword() != keyword:
            raise Unplayable
        self.at += 1

    def _chain(self) -> Chain:
        commands: list[tuple[str, bool, Command]] = []
        operator = ""
        while True:
            negated = self._keyword() == "!"
            self.at += negated
            commands.append((operator, negated, self._command()))
            token = self.peek()
            if token not in (Operator("&&"), Operator("||")):
                if token in (Operator("|"), Operator("&"), Operator(";;")):
                    raise Unplayable
                return Chain(tuple(commands))
            assert isinstance(token, Operator)
            operator = token.text
            self.at += 1
            while self.peek() == Operator("\n"):
                self.at += 1

    def _command(self) -> Command:
        keyword = self._keyword()
        if self.peek() == Operator("("):
            self.at += 1
            block = self.block(())
            if self.peek() != Operator(")"):
                raise Unplayable
            self.at += 1
            return block
        if keyword == "{":
            self.at += 1
            block = self.block(("}",))
            self._expect("}")
            return block
        if keyword == "if":
            return self._if()
        if keyword in ("while", "until"):
            self.at += 1
            condition = self.block(("do",))
            return Loop(condition, self._body(), keyword == "until")
        if keyword == "for":
            return self._for()
        if keyword:
            raise Unplayable
        return self._simple()

    def _body(self) -> Block:
        self._expect("do")
        body = self.block(("done",))
        self._expect("done")
        return body

    def _if(self) -> If:
        branches: list[tuple[Block, Block]] = []
        while self._keyword() in ("if", "elif"):
            self.at += 1
            condition = self.block(("then",))
            self._expect("then")
            branches.append((condition, self.block(("elif", "else", "fi"))))
        otherwise = Block()
        if self._keyword() == "else":
            self.at += 1
            otherwise = self.block(("fi",))
        self._expect("fi")
        return If(tuple(branches), otherwise)

    def _for(self) -> For:
        self.at += 1
        name = self._next_word().bare
        self._expect("in")
        values: list[Word] = []
        while isinstance(self.peek(), Word):
            values.append(self._next_word())
        while self.peek() in (Operator(";"), Operator("\n")):
            self.at += 1
        return For(name, tuple(values), self._body())

    def _next_word(self) -> Word:
        token = self.peek()
        if not isinstance(token, Word):
            raise Unplayable
        self.at += 1
        return token

    def _simple(self) -> Simple:
        words: list[Word] = []
        to_stderr = silent = False
        while isinstance(token := self.peek(), Word | Redirection):
            self.at += 1
            if isinstance(token, Word):
                words.append(token)
                continue
            if token.operator == "<<":
                raise Unplayable
            target = self._next_word().bare
            if token.operator in (">", ">>") and token.descriptor in ("", "1", "&"):
                silent = target not in ("/dev/stdout", "/dev/stderr")
                to_stderr = target == "/dev/stderr"
            elif token.operator == ">&" and token.descriptor in ("", "1"):
                to_stderr = target == "2"
        if not words:
            raise Unplayable
        return Simple(tuple(words), to_stderr, silent)
