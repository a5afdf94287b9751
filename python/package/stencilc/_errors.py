"""What goes wrong, as one exception that is both read and looked into."""

from __future__ import annotations

import re
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple, Union


class Diagnostic(NamedTuple):
    """Something to tell of a place in a text."""

    #: "error" or "warning"
    severity: str
    file: str
    #: from 1
    line: int
    #: in characters, from 1
    column: int
    message: str
    #: what stands at the place, such as a guess; perhaps empty
    label: str
    #: what mends it
    help: Tuple[str, ...]


class Error(Exception):
    """What stencilc refuses or cannot do. Its text is to be read; the attributes are the same as data."""

    #: what is wrong, without what mends it
    message: str
    #: what mends it
    help: Optional[str]
    #: whose turn it is: "input" (a text, an array, a file), "call", "machine", or "check" (a result is wrong, or stencilc itself is)
    fault: str
    #: what is told of places in a text, if that is what is wrong
    diagnostics: List[Diagnostic]

    def __init__(
        self,
        message: str,
        help: Optional[str] = None,
        fault: str = "call",
        diagnostics: Sequence[Diagnostic] = (),
    ) -> None:
        super().__init__(message if help is None else f"{message}\n  help: {help}")
        self.message = message
        self.help = help
        self.fault = fault
        self.diagnostics = list(diagnostics)

    def __reduce__(self) -> Tuple[type, Tuple[str, Optional[str], str, List[Diagnostic]]]:
        return (type(self), (self.message, self.help, self.fault, self.diagnostics))


def _option(name: str, quoted: Optional[str], plain: Optional[str]) -> str:
    value = quoted if quoted is not None else plain or ""
    shown = value if re.fullmatch(r"\d+|N", value) else f'"{value}"'
    return f"using({name.replace('-', '_')}={shown})"


#: What follows an option that is spoken of, and is no value of it.
_PROSE = "is|are|and|or|says|takes|names|has|writes|to|gives|makes|would|with|on|of|needs|does|compiles"

#: Options of the command line, as errors name them, and what they are in Python.
_WORDS: List[Tuple["re.Pattern[str]", Union[str, Callable[["re.Match[str]"], str]]]] = [
    (re.compile(r"--in (\w+)=\S+\.npy"), r"\1=array"),
    (re.compile(r"--set (\w+)="), r"\1="),
    (re.compile(r"a smaller --grid\b"), "a smaller grid"),
    (re.compile(r"--grid NIxNJxNK \(halo included\)"), "the shape of its arrays, (nk, nj, ni), first"),
    (re.compile(r"the same --(grid|mesh|levels)"), r"the same \1"),
    (re.compile(r"--grid NIxNJxNK"), "the shape of its arrays, (nk, nj, ni)"),
    (re.compile(r"write the numbers with --out"), "take the numbers, `run[name]`"),
    (re.compile(r"write it with --out \S+"), "it is what a call returns, and what a run is asked for by `run[name]`"),
    (re.compile(r"--draw=([\w,]+)"), lambda found: f"using(draw={found.group(1).split(',')!r})"),
    (re.compile(r"--draw\b"), "using(draw=True)"),
    (re.compile(r"--cast\b"), "using(cast=True)"),
    (re.compile(r"`run --checkpoint FILE`; without one, leave out --resume"), "`run.save(path)`"),
    (re.compile(r"give (one|--mesh FILE): `?Domain::Mesh \{ mesh, levels \}`?"), "give it first: `start(stencilc.mesh(path), ...)`"),
    (re.compile(r"--mesh FILE"), "a mesh, `stencilc.mesh(path)`, first"),
    (re.compile(r"--(stencil|program) (\w+)"), r'`.\1s["\2"]`'),
    (re.compile(r"`Job::start` copies what lies in another way"), "`numpy.ascontiguousarray(...)`, or that of its library, copies it"),
    (re.compile(r"[;,] or(?: take)? `Job::start`, which [^;]*"), ""),
    (re.compile(r"start it with the GPUs \(--gpus all\)"), "start it with the GPUs"),
    (re.compile(rf"--([a-z]+(?:-[a-z]+)*)(?= (?:{_PROSE})\b)"), lambda found: "`" + found.group(1).replace("-", "_") + "`"),
    (re.compile(r"--no-(\w+)"), r"using(no_\1=True)"),
    (re.compile(r"--([a-z]+(?:-[a-z]+)*)[ =](?:'([^']*)'|([\w.-]+))"), lambda found: _option(*found.groups())),
    (re.compile(r"--([a-z]+(?:-[a-z]+)*)"), lambda found: "`" + found.group(1).replace("-", "_") + "`"),
]


def in_python(text: str) -> str:
    """A message that names options of the command line, in words of Python."""
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text


def noted(text: str) -> str:
    """A note of a kernel, which is named by options of the command line."""
    text = re.sub(r", or(?: take)? `Job::start`, which [^;)]*", "", text)
    return text.replace("(--untuned takes", "(using(untuned=True) takes")


def made(
    fault: str,
    message: str,
    help: Optional[str],
    diagnostics: Sequence[Tuple[str, str, int, int, str, str, Sequence[str]]],
) -> Error:
    """The exception for an error of the library."""
    told = [Diagnostic(*own[:6], tuple(own[6])) for own in diagnostics]
    if told:
        # The text of a program is shown as it is.
        return Error(message, help, fault, told)
    return Error(in_python(message), None if help is None else in_python(help), fault, told)
