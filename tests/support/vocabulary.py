"""The real vocabulary of a GGUF file, without its weights."""

from __future__ import annotations

import ctypes
from pathlib import Path

import llama_cpp

from tandem.engine.template import is_marker


class Vocabulary:
    """A `tandem.engine.template.TokenCodec` on llama.cpp, with what tests need to check it.

    Args:
        path: A GGUF file.
    """

    def __init__(self, path: Path) -> None:
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        params.vocab_only = True
        self._model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
        assert self._model, f"{path} does not load"
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self.size = llama_cpp.llama_vocab_n_tokens(self._vocab)
        self.bos: int | None = llama_cpp.llama_vocab_bos(self._vocab)
        template = llama_cpp.llama_model_chat_template(self._model, None)
        self.template = template.decode() if template else ""
        always = llama_cpp.LLAMA_TOKEN_ATTR_CONTROL | llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN
        self.special: dict[int, str] = {}
        for token in range(self.size):
            text = llama_cpp.llama_vocab_get_text(self._vocab, token).decode()
            attr = llama_cpp.llama_vocab_get_attr(self._vocab, token)
            if attr & always or (attr & llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED and is_marker(text)):
                self.special[token] = text
        self.special_texts = tuple(self.special.values())

    def tokenize(self, text: str, special: bool) -> list[int]:
        """Ids of `text`, nothing added."""
        data = text.encode()
        room = len(data) + 8
        ids = (llama_cpp.llama_token * room)()
        count = llama_cpp.llama_tokenize(self._vocab, data, len(data), ids, room, False, special)
        assert count >= 0
        return list(ids[:count])

    def text(self, ids: list[int]) -> str:
        """The text of `ids`, control tokens included."""
        buffer = ctypes.create_string_buffer(256)
        pieces = []
        for token in ids:
            count = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, 256, 0, True)
            assert count >= 0
            pieces.append(buffer.raw[:count])
        return b"".join(pieces).decode()

    def piece(self, token: int) -> bytes:
        """The bytes that `token` adds to a text; none for control tokens."""
        buffer = ctypes.create_string_buffer(256)
        count = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, 256, 0, False)
        assert count >= 0
        return buffer.raw[:count]

    def close(self) -> None:
        """Frees the model."""
        llama_cpp.llama_model_free(self._model)
