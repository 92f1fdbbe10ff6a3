"""The plainest possible greedy loop with llama.cpp's own calls: an oracle for tests, and a stopwatch.

It shares no code with Tandem's engine, so that both can be held against each other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from llama_cpp import llama_cpp as lib
from llama_cpp import llama_cpp_ext as ext
from numpy.typing import NDArray

from support.handset_graph import Passes

Floats = NDArray[np.float32]


_silent = lib.llama_log_callback(lambda _level, _text, _user: None)  # kept, since llama.cpp calls it later


class Loop:
    """A target, and a drafter if given, in contexts of their own.

    Args:
        target: GGUF of the target.
        drafter: GGUF of the drafter.
        context: Context length in tokens.
        threads: Threads for everything.

    Raises:
        RuntimeError: llama.cpp refused a file.
    """

    def __init__(self, target: Path, drafter: Path | None = None, *, context: int = 512, threads: int = 1) -> None:
        lib.llama_log_set(_silent, ctypes.c_void_p(0))
        lib.llama_backend_init()
        self._models: list[int] = []
        self._contexts: list[int] = []
        self._target = self._open(target, context, threads, None)
        self._drafter = None if drafter is None else self._open(drafter, context, threads, self._target)
        ext.llama_set_embeddings_nextn(self._target, True, False)
        if self._drafter is not None:
            ext.llama_set_embeddings_nextn(self._drafter, True, True)
        self.vocab = lib.llama_model_get_vocab(self._models[0])
        self.size = lib.llama_vocab_n_tokens(self.vocab)
        self._hidden = lib.llama_model_n_embd(self._models[0])
        self._batch = lib.llama_batch_init(context, 0, 1)
        self._draft_batch = lib.llama_batch_init(1, self._hidden, 1)
        # llama_batch_init gives tokens or embeddings; a draft step needs both.
        self._draft_token = (lib.llama_token * 1)()
        self._draft_batch.token = ctypes.cast(self._draft_token, ctypes.POINTER(lib.llama_token))

    def _open(self, path: Path, context: int, threads: int, other: int | None) -> int:
        model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
        if not model:
            raise RuntimeError(f"llama.cpp does not load {path}")
        self._models.append(model)
        params = lib.llama_context_default_params()
        params.n_ctx = context
        params.n_batch = params.n_ubatch = 512 if other is None else 32
        params.swa_full = False
        params.n_threads = params.n_threads_batch = threads
        if other is not None:
            params.ctx_type = lib.LLAMA_CONTEXT_TYPE_MTP
            params.ctx_other = other
        made = lib.llama_init_from_model(model, params)
        if not made:
            raise RuntimeError(f"llama.cpp gives no context for {path}")
        self._contexts.append(made)
        return int(made)

    def __enter__(self) -> Loop:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._draft_batch.token = None
        lib.llama_batch_free(self._batch)
        lib.llama_batch_free(self._draft_batch)
        for context in reversed(self._contexts):
            lib.llama_free(context)
        for model in reversed(self._models):
            lib.llama_model_free(model)

    def piece(self, token: int) -> bytes:
        """The bytes that a token writes, control tokens as their text."""
        buffer = ctypes.create_string_buffer(256)
        length = lib.llama_token_to_piece(self.vocab, token, buffer, 256, 0, True)
        return buffer.raw[:length]

    def ends(self, token: int) -> bool:
        """Whether a token ends generation."""
        return bool(lib.llama_vocab_is_eog(self.vocab, token))

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        """Token ids of a text, without the begin-of-sequence token."""
        data = text.encode()
        ids = (lib.llama_token * (len(data) + 8))()
        count = lib.llama_tokenize(self.vocab, data, len(data), ids, len(ids), False, special)
        return list(ids[:count])

    def decode(self, tokens: Sequence[int], position: int) -> None:
        """One target pass over `tokens` from `position` on, with logits for every row."""
        batch = self._batch
        batch.n_tokens = len(tokens)
        for row, token in enumerate(tokens):
            batch.token[row] = token
            batch.pos[row] = position + row
            batch.n_seq_id[row] = 1
            batch.seq_id[row][0] = 0
            batch.logits[row] = 1
        if lib.llama_decode(self._target, batch) != 0:
            raise RuntimeError("llama_decode failed on the target")

    def logits(self, row: int) -> Floats:
        """The target's logits for a row of the last pass, shape [vocabulary]; a view until the next pass."""
        return np.ctypeslib.as_array(lib.llama_get_logits_ith(self._target, row), (self.size,))

    def nextn(self, row: int) -> Floats:
        """A copy of the target's hidden state for a row of the last pass, shape [hidden]."""
        return np.ctypeslib.as_array(ext.llama_get_embeddings_nextn_ith(self._target, row), (self._hidden,)).copy()

    def draft_step(self, token: int, hidden: Floats, position: int) -> tuple[Floats, Floats]:
        """One pass of the drafter.

        Args:
            token: The last token.
            hidden: Shape [hidden]: the target's state of the position before, or what the last step gave back.
            position: The position of the first drafted-for token, the same for every step of a draft.

        Returns:
            Its logits, shape [vocabulary] (a view), and the hidden state for the next step, shape [hidden].
        """
        batch = self._draft_batch
        batch.n_tokens = 1
        self._draft_token[0] = token
        ctypes.memmove(batch.embd, hidden.ctypes.data, hidden.nbytes)
        batch.pos[0] = position
        batch.n_seq_id[0] = 1
        batch.seq_id[0][0] = 0
        batch.logits[0] = 1
        if lib.llama_decode(self._drafter, batch) != 0:
            raise RuntimeError("llama_decode failed on the drafter")
        logits = np.ctypeslib.as_array(lib.llama_get_logits_ith(self._drafter, 0), (self.size,))
        after = np.ctypeslib.as_array(ext.llama_get_embeddings_nextn_ith(self._drafter, 0), (self._hidden,)).copy()
        return logits, after

    def forget(self, position: int) -> None:
        """Drops the target's KV cache from `position` on."""
        lib.llama_memory_seq_rm(lib.llama_get_memory(self._target), 0, position, -1)

    def greedy(self, prompt: Sequence[int], passes: int, draft: int) -> Passes:
        """Prefills `prompt` afresh and runs `passes` passes with `draft` drafts each, end of turn ignored."""
        self.forget(0)
        self.decode(prompt, 0)
        last = int(self.logits(len(prompt) - 1).argmax())
        hidden = self.nextn(len(prompt) - 1)
        position = len(prompt)
        tokens = [last]
        accepted: list[int] = []
        for _ in range(passes):
            drafts: list[int] = []
            state = hidden
            while len(drafts) < draft:
                logits, state = self.draft_step(drafts[-1] if drafts else last, state, position)
                drafts.append(int(logits.argmax()))
            self.decode([last, *drafts], position)
            choices = [int(self.logits(row).argmax()) for row in range(draft + 1)]
            hits = 0
            while hits < draft and choices[hits] == drafts[hits]:
                hits += 1
            hidden = self.nextn(hits)
            position += hits + 1
            self.forget(position)
            tokens += choices[: hits + 1]
            last = choices[hits]
            accepted.append(hits)
        return Passes(tuple(tokens), (draft,) * passes, tuple(accepted))
