"""A vocabulary of single characters, with one end-of-sequence and one padding symbol.

Left out: sub-words. A token is a character, so a response can be read as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from dapo_lib.errors import expect


@dataclass(frozen=True)
class Vocabulary:
    """Symbols in id order; `eos` ends a response, `pad` fills what is after it.

    Raises ``ValueError`` on a repeated symbol, a missing EOS or padding symbol, and
    where the two are the same (a padded row would look finished).

    >>> v = Vocabulary("01$_", eos="$", pad="_")
    >>> v.encode("10$"), v.decode([1, 0, 2]), len(v)
    ([1, 0, 2], '10$', 4)
    """

    symbols: str
    eos: str = "$"
    pad: str = "_"

    def __post_init__(self) -> None:
        once = len(set(self.symbols)) == len(self.symbols)
        expect(once, "symbols", repr(self.symbols), "every symbol once")
        for name, symbol in (("eos", self.eos), ("pad", self.pad)):
            known = len(symbol) == 1 and symbol in self.symbols
            expect(known, name, repr(symbol), f"one of the symbols {self.symbols!r}")
        expect(self.eos != self.pad, "pad", repr(self.pad), "another symbol than eos")

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def eos_id(self) -> int:
        """Id of the end-of-sequence symbol."""
        return self.symbols.index(self.eos)

    @property
    def pad_id(self) -> int:
        """Id of the padding symbol."""
        return self.symbols.index(self.pad)

    def id(self, symbol: str) -> int:
        """Id of one symbol. Raises ``ValueError`` on an unknown one."""
        expect(symbol in self.symbols, "symbol", repr(symbol), f"in {self.symbols!r}")
        return self.symbols.index(symbol)

    def encode(self, text: str) -> list[int]:
        """Ids of a text's characters. Raises ``ValueError`` on an unknown one."""
        return [self.id(symbol) for symbol in text]

    def decode(self, ids: Iterable[int] | Tensor) -> str:
        """The text of some ids."""
        return "".join(self.symbols[int(i)] for i in ids)
