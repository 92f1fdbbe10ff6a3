"""The only file that touches llama.cpp: its C calls, given Python shapes and Python errors.

Everything here is a thin, typed wrapper. `llama_cpp_ext`, which the drafter needs, reaches C++ symbols by mangled name
and is experimental upstream, so `check_symbols` comes first: a build that lacks one is named before anything loads.

`Context.logits` gives views of llama.cpp's own memory: valid until its next decode, and not to be written to.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from tandem.errors import EngineError

C: Any = llama_cpp.llama_cpp  # its own annotations do not survive its ctypes decorators
X: Any = None
_EXT_FAULT = ""
try:
    X = importlib.import_module("llama_cpp.llama_cpp_ext")
except AttributeError as fault:  # a build without these symbols
    _EXT_FAULT = str(fault)

Floats = NDArray[np.float32]
LogSink = Callable[[int, str], None]

_NEEDED: Final = """
    llama_model_load_from_file llama_model_free llama_init_from_model llama_free llama_decode llama_synchronize
    llama_get_logits_ith llama_get_memory llama_memory_seq_rm llama_memory_seq_pos_min
    llama_state_seq_get_size_ext llama_state_seq_get_data_ext llama_state_seq_set_data_ext
    llama_set_n_threads llama_set_abort_callback llama_tokenize llama_token_to_piece llama_vocab_get_attr
    llama_vocab_is_eog llama_vocab_get_text llama_model_chat_template llama_log_set llama_version
    """
_NEEDED_EXT: Final = "llama_set_embeddings_nextn llama_get_embeddings_nextn_ith llama_get_ctx_other"  # llama-ext.h

_ABORTED: Final = 2  # llama_decode: "aborted", llama.h
_KV_TYPES: Final = {"f16": C.GGML_TYPE_F16, "q8_0": C.GGML_TYPE_Q8_0}
_PARTIAL: Final = 1  # LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY: the sliding-window part of the KV cache, llama.h


class Aborted(Exception):
    """A decode or a load was stopped by `StopFlag.set`; nothing is wrong."""


class DecodeFailed(Exception):
    """llama.cpp refused (code 1: no room in the KV cache) or failed (code below 0)."""

    def __init__(self, code: int) -> None:
        super().__init__(f"llama_decode returned {code}")
        self.code: Final = code


def check_symbols() -> None:
    """Makes sure that this build has every call the engine needs; else an EngineError names each that is missing."""
    missing = [name for name in _NEEDED.split() if not hasattr(C._lib, name)]
    missing += [name for name in _NEEDED_EXT.split() if not hasattr(X, name)]
    if missing:
        raise EngineError(
            f"This build of llama.cpp lacks {', '.join(missing)}.",
            "Install the engine that Tandem was built for (llama-cpp-python 0.3.36).",
            _EXT_FAULT,
        )


_log_keepalive: list[object] = []


def versions() -> tuple[str, str]:
    """Versions of llama-cpp-python and of the llama.cpp inside it."""
    return llama_cpp.__version__, C.llama_version().decode()


def set_log(sink: LogSink) -> None:
    """Sends llama.cpp's log to `sink(level, text)`; levels are ggml's (2 warning, 3 error, 5 continued)."""

    def callback(level: int, text: bytes, _user: object) -> None:
        sink(level, text.decode("utf-8", "replace"))

    _log_keepalive[:] = [C.llama_log_callback(callback)]
    C.llama_log_set(_log_keepalive[0], ctypes.c_void_p(0))


class StopFlag:
    """A byte that llama.cpp looks at before each graph node, so that a decode ends within one node of `set`.

    The callback is libc's own `strlen` on this byte: 0 for 0, 1 for 1, just the boolean that llama.cpp wants.
    A Python callback would take the GIL a thousand times a pass.
    """

    def __init__(self) -> None:
        self._byte = ctypes.create_string_buffer(2)
        libc = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
        self._callback = C.ggml_abort_callback(ctypes.cast(libc.strlen, ctypes.c_void_p).value or 0)

    def set(self, wanted: bool = True) -> None:
        """Asks whatever runs to stop, or takes the wish back. May be called from any thread."""
        self._byte[0] = b"\x01" if wanted else b"\x00"

    @property
    def is_set(self) -> bool:
        """Whether a stop was asked for."""
        return self._byte.raw[0] != 0

    def attach(self, context: Context) -> None:
        """Makes `context` look at this flag before a decode, and on a CPU during it (a GPU runs it to its end)."""
        context.stop = self
        C.llama_set_abort_callback(context.handle, self._callback, ctypes.addressof(self._byte))


class Device(NamedTuple):
    """A compute device as ggml lists it; `kind` is one of `_KINDS`, memory in bytes."""

    name: str
    description: str
    kind: str
    free: int
    total: int
    handle: int


_KINDS: Final = ("cpu", "gpu", "integrated gpu", "accelerator")  # enum ggml_backend_dev_type, ggml-backend.h


def devices() -> list[Device]:
    """All devices of the backends that are loaded, CPU included."""

    def call(name: str, restype: Any, *args: Any) -> Any:
        function = getattr(C._lib, name)  # found through libllama's own dependencies
        function.restype = restype
        return function(*args)

    found = []
    for index in range(call("ggml_backend_dev_count", ctypes.c_size_t)):
        handle = ctypes.c_void_p(call("ggml_backend_dev_get", ctypes.c_void_p, ctypes.c_size_t(index)))
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        call("ggml_backend_dev_memory", None, handle, ctypes.byref(free), ctypes.byref(total))
        kind = _KINDS[min(call("ggml_backend_dev_type", ctypes.c_int, handle), len(_KINDS) - 1)]
        name, text = (
            call(f"ggml_backend_dev_{part}", ctypes.c_char_p, handle).decode("utf-8", "replace")
            for part in ("name", "description")
        )
        found.append(Device(name, text, kind, free.value, total.value, handle.value or 0))
    return found


class Model:
    """A loaded GGUF.

    Args:
        path: Its file.
        device: Where the layers go; None or a CPU device keeps all on the CPU.
        gpu_layers: Layers on the device; -1 is all.
        progress: Called with 0..1 while loading; returning False ends the load with Aborted.

    DecodeFailed means that llama.cpp could not load it; its log says why.
    """

    def __init__(
        self, path: Path, device: Device | None, gpu_layers: int = -1, progress: Callable[[float], bool] | None = None
    ) -> None:
        params = C.llama_model_default_params()
        on_gpu = device is not None and device.kind != "cpu"
        chosen = (ctypes.c_void_p * 2)(device.handle if device is not None and on_gpu else None, None)
        params.devices = ctypes.cast(chosen, ctypes.c_void_p)
        params.n_gpu_layers = gpu_layers if on_gpu else 0
        stopped = False

        def on_progress(value: float, _user: object) -> bool:
            nonlocal stopped
            stopped = progress is not None and not progress(value)
            return not stopped

        callback = C.llama_progress_callback(on_progress)  # kept alive by this name while loading
        params.progress_callback = callback
        self.handle = C.llama_model_load_from_file(os.fsencode(path), params)
        if stopped:
            self.free()
            raise Aborted
        if not self.handle:
            raise DecodeFailed(-1)
        self._vocab = C.llama_model_get_vocab(self.handle)
        self.vocabulary: Final = int(C.llama_vocab_n_tokens(self._vocab))
        self.width_out: Final = int(C.llama_model_n_embd_out(self.handle))
        self.width_in: Final = int(C.llama_model_n_embd_inp(self.handle))
        self.context_length: Final = int(C.llama_model_n_ctx_train(self.handle))
        self.window: Final = int(C.llama_model_n_swa(self.handle))
        self.add_bos: Final = bool(C.llama_vocab_get_add_bos(self._vocab))
        self._pieces: dict[int, bytes] = {}
        self.ends: Final = frozenset(t for t in range(self.vocabulary) if C.llama_vocab_is_eog(self._vocab, t))
        self.bos: Final = int(C.llama_vocab_bos(self._vocab))
        self.eos: Final = int(C.llama_vocab_eos(self._vocab))

    def free(self) -> None:
        """Gives the memory back. Contexts of this model must be gone."""
        if self.handle:
            C.llama_model_free(self.handle)
            self.handle = None

    @property
    def chat_template(self) -> str | None:
        """The GGUF's own Jinja template."""
        text = C.llama_model_chat_template(self.handle, None)
        return text.decode("utf-8", "replace") if text else None

    def special_tokens(self) -> dict[str, int]:
        """Texts and ids of control tokens and of user-defined ones that look like markers (`<|…>`, `<…|>`)."""
        control = C.LLAMA_TOKEN_ATTR_CONTROL | C.LLAMA_TOKEN_ATTR_UNKNOWN  # both are parsed: llama-vocab.cpp
        user = C.LLAMA_TOKEN_ATTR_USER_DEFINED
        found = {}
        for token in range(self.vocabulary):
            attributes = C.llama_vocab_get_attr(self._vocab, token)
            if attributes & (control | user):
                text = (C.llama_vocab_get_text(self._vocab, token) or b"").decode("utf-8", "replace")
                if text and (attributes & control or text.startswith("<|") or text.endswith("|>")):
                    found[text] = token
        return found

    def piece(self, token: int) -> bytes:
        """The bytes that `token` adds to a text; none for control tokens and for ids outside the vocabulary."""
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = self._read_piece(token)
        return piece

    def _read_piece(self, token: int) -> bytes:
        size = 64
        while 0 <= token < self.vocabulary:
            buffer = ctypes.create_string_buffer(size)
            length = C.llama_token_to_piece(self._vocab, token, buffer, size, 0, False)
            if length >= 0:
                return buffer.raw[:length]
            size = -length
        return b""

    def tokenize(self, text: str, special: bool) -> list[int]:
        """Token ids of `text` (no lone surrogates); `special` makes control tokens of those spelled in it."""
        data = text.encode()
        ids = (C.llama_token * (len(data) + 8))()  # a token is at least a byte long
        count = C.llama_tokenize(self._vocab, data, len(data), ids, len(ids), False, special)
        return list(ids[: max(count, 0)])


class Batch:
    """Room for up to `size` tokens of one sequence, filled in place, so that a pass allocates nothing.

    `width` is the length of a token's input embedding, for a drafter; 0 for a target.
    """

    def __init__(self, size: int, width: int = 0) -> None:
        self.tokens: Final = np.zeros(size, np.int32)
        self.positions, self.outputs = np.zeros(size, np.int32), np.zeros(size, np.int8)
        self.embeddings: Final = np.zeros((size, max(width, 1)), np.float32)
        self._sequence = np.zeros(1, np.int32)
        self._sequences = np.full(size, self._sequence.ctypes.data, np.uintp)  # every token is of sequence 0
        self._counts = np.ones(size, np.int32)
        self.raw: Final[Any] = C.llama_batch()

        def at(array: NDArray[Any], kind: Any) -> Any:
            return array.ctypes.data_as(ctypes.POINTER(kind))

        self.raw.token, self.raw.pos = at(self.tokens, C.llama_token), at(self.positions, C.llama_pos)
        self.raw.embd = at(self.embeddings, ctypes.c_float) if width else None
        self.raw.n_seq_id = at(self._counts, ctypes.c_int32)
        self.raw.seq_id = at(self._sequences, ctypes.POINTER(C.llama_seq_id))
        self.raw.logits = at(self.outputs, ctypes.c_int8)

    def fill(self, tokens: Sequence[int], start: int, all_rows: bool) -> None:
        """Sets the batch to `tokens` at positions from `start`; scores for all rows or for the last one only."""
        count = len(tokens)
        self.tokens[:count] = tokens
        self.positions[:count] = range(start, start + count)
        self.outputs[:count] = all_rows
        self.outputs[count - 1] = 1
        self.raw.n_tokens = count


class Context:
    """A context over a model: its KV cache and its compute buffers.

    Args:
        model: What it runs.
        size: Positions of the KV cache.
        batch: Most tokens in one decode.
        rows: Most rows of scores in one decode; bounds the score buffer, 4 bytes times the vocabulary a row.
        threads: Threads of a decode.
        shared_with: The target's context, for an MTP drafter: its KV cache is used.
        flash_attention: None lets llama.cpp choose. The layout of the cache depends on it, so sharers must agree.
        kv_type: "f16" or "q8_0", which turns flash attention on; a shared cache stays as it is.

    DecodeFailed means that no context came back: out of memory, or a drafter that does not fit the target.
    """

    def __init__(
        self,
        model: Model,
        *,
        size: int,
        batch: int,
        rows: int,
        threads: int,
        shared_with: Context | None = None,
        flash_attention: bool | None = None,
        kv_type: str = "f16",
    ) -> None:
        params = C.llama_context_default_params()
        params.n_ctx, params.n_outputs_max = size, rows
        params.n_batch = params.n_ubatch = batch
        params.n_threads = params.n_threads_batch = threads
        params.swa_full = False  # llama.cpp's default would keep every position of the sliding layers
        params.no_perf = True
        params.type_k = params.type_v = _KV_TYPES[kv_type]
        self.flash_attention: Final = True if flash_attention is None and kv_type != "f16" else flash_attention
        params.flash_attn_type = -1 if self.flash_attention is None else int(self.flash_attention)  # -1: auto
        if shared_with is not None:
            params.ctx_type = C.LLAMA_CONTEXT_TYPE_MTP
            params.ctx_other = shared_with.handle
        self.model: Final = model
        self.stop: StopFlag | None = None
        self.handle: Any = C.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise DecodeFailed(-2)
        self.size: Final = min(size, int(C.llama_n_ctx(self.handle)))  # llama.cpp rounds up to 256
        self.batch_size: Final = batch
        self._memory = C.llama_get_memory(self.handle)
        self._row_type, self._nextn_bytes = ctypes.c_float * model.vocabulary, 4 * model.width_out
        prototype = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)
        self._logits_at = prototype(("llama_get_logits_ith", C._lib))

    def free(self) -> None:
        """Gives the memory back; a drafter's context goes before the target's that it shares."""
        if self.handle:
            C.llama_free(self.handle)
            self.handle = None

    def shares(self, other: Context) -> bool:
        """Whether this drafter's context really uses the KV cache of `other`."""
        return bool(X.llama_get_ctx_other(self.handle) == other.handle)

    def expose_nextn(self, all_rows: bool) -> None:
        """Makes decodes keep the hidden rows that a drafter starts from: of all tokens, or of those with scores."""
        X.llama_set_embeddings_nextn(self.handle, True, not all_rows)

    def set_threads(self, count: int) -> None:
        """Changes the threads from the next decode on; llama.cpp's second count is for more than one token."""
        C.llama_set_n_threads(self.handle, count, count)

    def decode(self, batch: Batch) -> None:
        """Runs the model over the batch and waits; raises Aborted (nothing of it is in the cache) or DecodeFailed."""
        if self.stop is not None and self.stop.is_set:
            raise Aborted
        code = C.llama_decode(self.handle, batch.raw)
        if code != 0:
            raise Aborted if code == _ABORTED else DecodeFailed(int(code))
        C.llama_synchronize(self.handle)

    def logits(self, row: int) -> Floats:
        """Scores of batch row `row`, shape (vocabulary,), a view."""
        address = self._logits_at(self.handle, row)
        if not address:
            raise DecodeFailed(-3)
        memory: Any = self._row_type.from_address(address)
        scores: Floats = np.frombuffer(memory, np.float32)
        return scores

    def copy_nextn(self, row: int, into: Floats) -> None:
        """Copies the hidden row of batch row `row`, shape (width_out,), into a contiguous array."""
        pointer = X.llama_get_embeddings_nextn_ith(self.handle, row)
        if not pointer:
            raise DecodeFailed(-4)
        ctypes.memmove(into.ctypes.data, pointer, self._nextn_bytes)

    def remove_from(self, position: int) -> None:
        """Forgets every position from `position` on."""
        C.llama_memory_seq_rm(self._memory, 0, position, -1)

    def lowest(self) -> int:
        """First position that every layer holds, sliding ones included; -1 when empty."""
        return int(C.llama_memory_seq_pos_min(self._memory, 0))

    def save_window(self, most: int) -> bytes:
        """The sliding layers' part of the KV cache, for `restore_window`; nothing if it has more than `most` bytes."""
        if (size := C.llama_state_seq_get_size_ext(self.handle, 0, _PARTIAL)) > most:
            return b""
        buffer = (ctypes.c_uint8 * size)()
        written = C.llama_state_seq_get_data_ext(self.handle, buffer, size, 0, _PARTIAL)
        return bytes(memoryview(buffer)[:written])

    def restore_window(self, saved: bytes) -> bool:
        """Puts back what `save_window` gave; whether it could."""
        buffer = (ctypes.c_uint8 * len(saved)).from_buffer_copy(saved)
        return bool(C.llama_state_seq_set_data_ext(self.handle, buffer, len(saved), 0, _PARTIAL))
