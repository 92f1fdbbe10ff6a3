"""What this machine is, and an estimate of whether a pair fits its memory.

`read` starts a process to name the CPU and takes about a second: never call it where somebody waits. The rest is
arithmetic. The estimate counts what a pair asks for at most: weights that are mapped from a file need not all stay in
memory, but a pass over weights that do not stay is read from disk again, and then nothing here is quick.
"""

from __future__ import annotations

import functools
import platform
from dataclasses import dataclass
from typing import Final, Literal

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
        full_layers: Layers with a KV cache over the whole context.
        sliding_layers: Layers with a KV cache over a window.
        kv_heads: Key-value heads of each.
        host: Where the files lie, for people to look; Tandem itself asks nothing there.
        repository: Their place there.
        target_file: The target's file.
        drafter_file: The drafter's file.
    """

    key: str
    name: str
    target: int
    drafter: int
    full_layers: int
    sliding_layers: int
    kv_heads: int
    host: str
    repository: str
    target_file: str
    drafter_file: str

    @property
    def weights(self) -> int:
        """Both files."""
        return self.target + self.drafter

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


# Bytes: of the published files, all matrices in Q4_0 (xbill9/gemma-4-E2B-it-qat-q4_0-exact-gguf and
# xbill9/gemma-4-E4B-it-qat-q4_0-exact-gguf); their drafters are given there as 59.2 and 59.7 MB.
# Layers and heads: of the models' own configuration.
NEEDS: Final = (
    Need(
        "e2b",
        "Gemma 4 E2B",
        2_620_370_912,
        59_200_000,
        full_layers=3,
        sliding_layers=12,
        kv_heads=1,
        host="huggingface.co",
        repository="unsloth/gemma-4-E2B-it-qat-GGUF",
        target_file="gemma-4-E2B-it-qat-UD-Q4_K_XL.gguf",
        drafter_file="mtp-gemma-4-E2B-it.gguf",
    ),
    Need(
        "e4b",
        "Gemma 4 E4B",
        4_215_695_712,
        59_700_000,
        full_layers=4,
        sliding_layers=20,
        kv_heads=2,
        host="huggingface.co",
        repository="unsloth/gemma-4-E4B-it-qat-GGUF",
        target_file="gemma-4-E4B-it-qat-UD-Q4_K_XL.gguf",
        drafter_file="mtp-gemma-4-E4B-it.gguf",
    ),
)
"""The two pairs that Tandem is made for."""


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
