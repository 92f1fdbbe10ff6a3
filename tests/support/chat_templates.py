"""Chat templates that tests render, and Jinja set up as Hugging Face's `apply_chat_template` does it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from jinja2 import Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tandem.engine.template import Message

_EMPTY_THOUGHT: Final = """        {%- if not enable_thinking | default(false) -%}
            {{- '<|channel>thought\\n<channel|>' -}}
        {%- endif -%}
"""


def _without_empty_thought(source: str) -> str:
    head, found, tail = source.partition(_EMPTY_THOUGHT)
    assert found
    return head + tail


GEMMA4_31B: Final = (Path(__file__).parent / "templates" / "gemma4.jinja").read_text(encoding="utf-8")
GEMMA4_E2B: Final = _without_empty_thought(GEMMA4_31B)
DEMO: Final = (
    "{{ bos_token }}{% for m in messages %}{{ '<|turn>' + ('model' if m['role'] == 'assistant' else m['role']) + '\\n'"
    " + (m['content'] | trim) + '<turn|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|turn>model\\n' }}"
    "{% endif %}"
)
"""The demo pair's own."""


def _raise_exception(message: str) -> NoReturn:
    raise ValueError(message)


@functools.cache
def _compiled(source: str) -> Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _raise_exception
    return environment.from_string(source)


def render_plainly(source: str, messages: Sequence[Message], thinking: bool, add_generation_prompt: bool = True) -> str:
    """What the template gives for the texts themselves, with nothing of Tandem between."""
    return _compiled(source).render(
        messages=[{"role": message.role, "content": message.content} for message in messages],
        enable_thinking=thinking,
        add_generation_prompt=add_generation_prompt,
        tools=None,
        documents=None,
        bos_token="<bos>",
        eos_token="<eos>",
    )
