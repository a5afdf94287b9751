"""Texts that were read, and what is in them by name."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Dict, Iterator, List, Mapping, TypeVar

from . import _core
from ._errors import Diagnostic, Error
from ._jax import JaxStencil
from ._programs import Program
from ._stencils import Stencil
from ._reports import Testing, Tuning, Verification, reported
from ._subjects import Field, Param, Place, worded

Item = TypeVar("Item")


class ByName(Mapping[str, Item]):
    """Stencils or programs by their names."""

    def __init__(self, what: str, items: Mapping[str, Item]) -> None:
        self._what = what
        self._items = dict(items)

    def __getitem__(self, name: str) -> Item:
        if name in self._items:
            return self._items[name]
        near = get_close_matches(str(name), self._items, 1)
        have = ", ".join(self._items) or "none"
        raise Error(
            f"the text has no {self._what} `{name}`", f"did you mean `{near[0]}`?" if near else f"it has {have}"
        )

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"{{{', '.join(self._items)}}}"


class Text:
    """A text that was read. With one stencil, it can be used as that stencil."""

    def __init__(self, core: _core.Text) -> None:
        self._core = core
        #: its stencils by name
        self.stencils: ByName[Stencil] = ByName("stencil", {own.name: Stencil(own, {}) for own in core.stencils()})
        #: its programs by name
        self.programs: ByName[Program] = ByName("program", {own.name: Program(own, {}) for own in core.programs()})

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._core.name

    @property
    def text(self) -> str:
        """The text, with all that it imports."""
        return self._core.text

    @property
    def warnings(self) -> List[Diagnostic]:
        """What there is to tell of it, though nothing is wrong."""
        return [Diagnostic(*own[:6], tuple(own[6])) for own in self._core.warnings]

    @property
    def stencil(self) -> Stencil:
        """The only stencil that it has."""
        if len(self.stencils) == 1:
            return next(iter(self.stencils.values()))
        if not self.stencils:
            raise Error(f"`{self.name}` has no stencil", "what it has is there for texts that import it")
        names = list(self.stencils)
        raise Error(
            f"`{self.name}` has {len(names)} stencils: {', '.join(names)}", f'choose one: `.stencils["{names[0]}"]`'
        )

    def __call__(self, place: Any = None, /, **given: Any) -> Any:
        """See `Stencil.__call__`."""
        return self.stencil(place, **given)

    def bind(self, **given: Any) -> _core.Bound:
        """See `Stencil.bind`."""
        return self.stencil.bind(**given)

    def using(self, **options: Any) -> Stencil:
        """See `Stencil.using`."""
        return self.stencil.using(**options)

    def explain(self, grid: Place = None, **options: Any) -> str:
        """See `Stencil.explain`."""
        return self.stencil.explain(grid, **options)

    def verify(self, grid: Place = None, **options: Any) -> Verification:
        """See `Stencil.verify`."""
        return self.stencil.verify(grid, **options)

    def tune(self, grid: Place = None, **options: Any) -> Tuning:
        """See `Stencil.tune`."""
        return self.stencil.tune(grid, **options)

    def test(self, mesh: Place = None, **options: Any) -> Testing:
        """Runs all tests that stand in the text; see `Stencil.test`."""
        return reported(Testing, _core.test_all(self._core, worded(mesh, options, {})))

    @property
    def fields(self) -> Dict[str, Field]:
        """The fields of its only stencil."""
        return self.stencil.fields

    @property
    def params(self) -> Dict[str, Param]:
        """The parameters of its only stencil."""
        return self.stencil.params

    @property
    def torch(self) -> Any:
        """See `Stencil.torch`."""
        return self.stencil.torch

    @property
    def jax(self) -> JaxStencil:
        """See `Stencil.jax`."""
        return self.stencil.jax

    @property
    def cuda(self) -> str:
        """The CUDA of its only stencil."""
        return self.stencil.cuda

    def __repr__(self) -> str:
        return f"<stencilc text {self.name}: stencils {self.stencils!r}, programs {self.programs!r}>"
