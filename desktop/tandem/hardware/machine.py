"""What this machine is, and an estimate of whether a pair fits its memory.

`read` starts a process to name the CPU and takes about a second: never call it where somebody waits. The rest is
arithmetic. The estimate counts what a pair asks for at most: weights that are mapped from a file need not all stay in
memory, but a pass over weights that do not stay is read from disk again, and then nothing here is quick.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, overload

from tandem.models.catalog import CatalogPair, CatalogSize, catalog

Fit = Literal["fits", "tight", "too-large"]
"""Into what is free now; only after other programs were closed; not at all."""

MIB: Final = 1 << 20
USUAL_CONTEXT: Final = 8192
"""Positions of the KV cache that the estimate counts with: what the engine takes when nothing else is asked for."""

COMPUTE: Final = 256 * MIB
"""Buffers beside weights and KV: about 180 MiB for a target at 8,192 positions and 25 MiB for the drafter (measured
by others on a GPU, E2B and E4B alike), rounded up."""

MARGIN: Final = 512 * MIB
"""For Tandem's own window and for what other programs take meanwhile."""

SYSTEM: Final = 1024 * MIB
"""What the operating system keeps when every other program is closed."""

_F16_BYTES: Final = 2
_SLIDING_HEAD, _FULL_HEAD = 256, 512
_WINDOW, _UBATCH, _CELLS = 512, 512, 256


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts of this machine; memory in bytes.

    Attributes:
        cpu: The processor's name as it gives it, or its kind where it has none.
        cores: Physical cores; None where the system does not say.
        cpus: Logical CPUs that this process may use.
        memory_total: All of the memory.
        memory_free: What programs can still take without swapping.
        system: Operating system and version.
    """

    cpu: str
    cores: int | None
    cpus: int
    memory_total: int
    memory_free: int
    system: str


@dataclass(frozen=True, slots=True)
class Need:
    """What a pair needs; sizes in bytes.

    Attributes:
        key: Short name: "e2b", "e4b".
        name: The model's name.
        target: The target's weights.
        drafter: The drafter's weights.
        full_layers: Layers with a KV cache over the whole context; 0 where the shape is not known.
        sliding_layers: Layers with a KV cache over a window.
        kv_heads: Key-value heads of each.
    """

    key: str
    name: str
    target: int
    drafter: int
    full_layers: int
    sliding_layers: int
    kv_heads: int

    @property
    def weights(self) -> int:
        """Both files."""
        return self.target + self.drafter

    @property
    def exact(self) -> bool:
        """Whether the KV cache is counted; without it the model takes more than `memory` says."""
        return self.kv_heads > 0

    def kv(self, context: int = USUAL_CONTEXT) -> int:
        """KV cache at f16 for `context` positions.

        Keys and values of a full layer: 2 * heads * 512 numbers a position. Of a sliding layer: 2 * heads * 256 a
        cell, with min(context, window + batch) cells, rounded up to 256.
        """
        cells = -(-min(context, _WINDOW + _UBATCH) // _CELLS) * _CELLS
        full = self.full_layers * 2 * self.kv_heads * _FULL_HEAD * _F16_BYTES * context
        return full + self.sliding_layers * 2 * self.kv_heads * _SLIDING_HEAD * _F16_BYTES * cells

    def memory(self, context: int = USUAL_CONTEXT) -> int:
        """Estimate of all that the pair takes: weights, KV cache, buffers and a margin."""
        return self.weights + self.kv(context) + COMPUTE + MARGIN


def need_of(size: CatalogSize, pair: CatalogPair | None = None) -> Need:
    """What a pair of the catalog needs.

    Args:
        size: The model's size.
        pair: One of its pairs; None takes the default one.
    """
    chosen, shape = pair or size.default, size.shape
    return Need(
        chosen.key,
        size.name,
        chosen.target.size,
        chosen.drafter.size,
        full_layers=0 if shape is None else shape.full_layers,
        sliding_layers=0 if shape is None else shape.sliding_layers,
        kv_heads=0 if shape is None else shape.kv_heads,
    )


class _Needs(Sequence[Need]):
    """Read from the catalog when they are first looked at: a damaged catalog must not keep the app from starting."""

    @functools.cached_property
    def _all(self) -> tuple[Need, ...]:
        return tuple(need_of(size) for size in catalog().sizes if size.main)

    @overload
    def __getitem__(self, place: int) -> Need: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Need, ...]: ...
    def __getitem__(self, place: int | slice) -> Need | tuple[Need, ...]:
        return self._all[place]

    def __len__(self) -> int:
        return len(self._all)


NEEDS: Final[Sequence[Need]] = _Needs()
"""The two pairs that Tandem is made for, the smaller one first."""


def fit(needed: int, machine: Machine) -> Fit:
    """Whether `needed` bytes go into this machine's memory."""
    if needed <= machine.memory_free:
        return "fits"
    return "tight" if needed <= machine.memory_total - SYSTEM else "too-large"


def best(machine: Machine) -> Need | None:
    """The largest pair that fits now, else the smallest one that is tight, else None."""
    for wanted, needs in (("fits", reversed(NEEDS)), ("tight", iter(NEEDS))):
        for need in needs:
            if fit(need.memory(), machine) == wanted:
                return need
    return None


@functools.cache
def _processor() -> str:
    """Its name, which takes a second to find and never changes."""
    import cpuinfo

    name = cpuinfo.get_cpu_info().get("brand_raw") or platform.processor() or platform.machine()
    return " ".join(str(name).split())


def read() -> Machine:
    """Asks the system; takes about a second for the first time, and next to nothing after that."""
    # Imported here: the window knows these types before it shows, and these modules take 40 ms to load.
    import psutil

    from tandem.engine.threads import allowed_cpus

    memory = psutil.virtual_memory()
    return Machine(
        cpu=_processor(),
        cores=psutil.cpu_count(logical=False),
        cpus=allowed_cpus(),
        memory_total=int(memory.total),
        memory_free=int(memory.available),
        system=f"{platform.system()} {platform.release()}",
    )
