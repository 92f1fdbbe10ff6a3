r"""Formulas as tidy text: `\frac{a}{b}` becomes `a/b`, `x_1^2` becomes `x₁²`, `\alpha` becomes `α`.

Not typesetting: what has no character of its own stays readable as it was written.
"""

from __future__ import annotations

import re
from typing import Final

MAX_LENGTH: Final = 4000
"""Characters of a formula that are tidied; a longer one is shown as it is."""
_ROUNDS: Final = 12

_NAMED: Final = """
    alpha α  beta β  gamma γ  delta δ  epsilon ε  zeta ζ  eta η  theta θ  iota ι  kappa κ  lambda λ  mu μ
    nu ν  xi ξ  pi π  rho ρ  sigma σ  tau τ  upsilon υ  phi φ  chi χ  psi ψ  omega ω  Gamma Γ  Delta Δ
    Theta Θ  Lambda Λ  Xi Ξ  Pi Π  Sigma Σ  Upsilon Υ  Phi Φ  Psi Ψ  Omega Ω  varepsilon ε  vartheta ϑ
    varphi φ  varrho ϱ  varsigma ς  times ×  cdot ·  div ÷  pm ±  mp ∓  ast ∗  star ⋆  circ ∘  bullet •  leq ≤
    le ≤  geq ≥  ge ≥  neq ≠  ne ≠  approx ≈  equiv ≡  sim ∼  simeq ≃  cong ≅  propto ∝  ll ≪  gg ≫  subset ⊂
    supset ⊃  subseteq ⊆  supseteq ⊇  in ∈  notin ∉  ni ∋  cup ∪  cap ∩  setminus ∖  emptyset ∅  varnothing ∅
    forall ∀  exists ∃  nexists ∄  neg ¬  lnot ¬  land ∧  wedge ∧  lor ∨  vee ∨  oplus ⊕  otimes ⊗  perp ⊥
    parallel ∥  angle ∠  triangle △  infty ∞  partial ∂  nabla ∇  sum ∑  prod ∏  int ∫  iint ∬  oint ∮  sqrt √
    to →  rightarrow →  leftarrow ←  Rightarrow ⇒  Leftarrow ⇐  leftrightarrow ↔  Leftrightarrow ⇔  implies ⇒
    iff ⇔  mapsto ↦  uparrow ↑  downarrow ↓  ldots …  cdots ⋯  dots …  vdots ⋮  ddots ⋱  prime ′  degree °
    hbar ℏ  ell ℓ  Re ℜ  Im ℑ  aleph ℵ  langle ⟨  rangle ⟩  lfloor ⌊  rfloor ⌋  lceil ⌈  rceil ⌉  mid |
    vert |  Vert ‖  therefore ∴  because ∵  models ⊨  vdash ⊢  top ⊤  bot ⊥  blacksquare ■
"""
_WORDS: Final = _NAMED.split()
_SYMBOLS: Final = dict(zip(_WORDS[::2], _WORDS[1::2], strict=True)) | {"quad": "\u2003", "qquad": "\u2003\u2003"}
_RAISED: Final = str.maketrans("0123456789+-=()nixyabcdefghjklmoprstuvwz", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣʸᵃᵇᶜᵈᵉᶠᵍʰʲᵏˡᵐᵒᵖʳˢᵗᵘᵛʷᶻ")
_LOWERED: Final = str.maketrans("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
_BOLD: Final = {"R": "ℝ", "N": "ℕ", "Z": "ℤ", "Q": "ℚ", "C": "ℂ", "P": "ℙ", "E": "𝔼"}

_GROUP: Final = r"\{([^{}]*)\}"
_FRACTION: Final = re.compile(r"\\[dtc]?frac\s*" + _GROUP + r"\s*" + _GROUP)
_ROOT: Final = re.compile(r"\\sqrt\s*(?:\[([^\]{}]*)\])?\s*" + _GROUP)
_BLACKBOARD: Final = re.compile(r"\\mathbb\s*\{([A-Z])\}")
_TEXT: Final = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mathcal|mathsf|operatorname\*?|boxed|bar|hat|vec|tilde|"
    r"overline|underline|boldsymbol|bm)\s*" + _GROUP
)
_SCRIPT: Final = re.compile(r"([\^_])(?:" + _GROUP + r"|(\\?[A-Za-z]+|.))")
_SIMPLE: Final = re.compile(r"[\d.]+|[^\W\d_]+[′⁰-⁹ⁱⁿ₀-₉¹²³]*|\\[A-Za-z]+|[A-Za-z]?\([^()]*\)")
_ENVIRONMENT: Final = re.compile(r"\\(?:begin|end)\s*\{[a-zA-Z]+\*?\}(?:\{[lcr| ]*\})?")
_COMMAND: Final = re.compile(r"\\([A-Za-z]+)(\s?)")
_SIZES: Final = re.compile(
    r"\\(?:left|right|bigl|bigr|Bigl|Bigr|big|Big|displaystyle|textstyle|limits|nolimits)(?![A-Za-z])\.?"
)


def tidy(formula: str) -> str:
    """A formula in characters; lines stay lines. Braces that mean nothing any more are left out."""
    text = formula.strip("\n").strip()
    if len(text) > MAX_LENGTH:
        return text
    text = _SIZES.sub("", _ENVIRONMENT.sub("", text))
    text = re.sub(r"\\\\(?:\[[^\]]*\])?[ \t]*\n?", "\n", text).replace("&", " ")
    text = re.sub(r"\\[,;:! ]|~", " ", text)
    for _ in range(_ROUNDS):  # innermost first
        before = text
        text = _BLACKBOARD.sub(lambda found: _BOLD.get(found[1], found[1]), text)
        text = _TEXT.sub(r"\1", text)
        text = _SCRIPT.sub(_script, text)
        text = _ROOT.sub(_root, text)
        text = _FRACTION.sub(lambda found: f"{_wrapped(found[1])}/{_wrapped(found[2])}", text)
        if text == before:
            break
    text = _COMMAND.sub(_symbol, text)
    text = re.sub(r"\\([{}%$#&_|])", lambda found: chr(0xE000 + ord(found[1])), text)
    text = re.sub(r"[{}]", "", text)
    text = re.sub(r"[\ue000-\ue0ff]", lambda found: chr(ord(found[0]) - 0xE000), text)
    return "\n".join(line for line in (re.sub(r" {2,}", " ", line).strip() for line in text.split("\n")) if line)


def _script(found: re.Match[str]) -> str:
    inner = found[2] if found[2] is not None else found[3]
    if found[2] is None and len(inner) > 1 and not inner.startswith("\\"):
        return found[1] + "{" + inner[0] + "}" + inner[1:] if inner[0] not in "^_" else found[0]
    inner = _COMMAND.sub(_symbol, inner).strip()
    table = _RAISED if found[1] == "^" else _LOWERED
    if found[1] == "^" and inner in ("′", "∘", "°"):
        return inner.replace("∘", "°")
    moved = inner.translate(table)
    if inner and all(ord(character) in table for character in inner):
        return moved
    mark = "\ue05e" if found[1] == "^" else "\ue05f"  # in the private area, so that this is not found again
    word = found[1] == "_" and inner.isalnum()
    return f"{mark}{inner if len(inner) == 1 or word else f'({inner})'}"


def _root(found: re.Match[str]) -> str:
    index = {"3": "∛", "4": "∜"}.get(found[1] or "", "√" if not found[1] else f"{found[1].translate(_RAISED)}√")
    return f"{index}{_wrapped(found[2])}"


def _wrapped(text: str) -> str:
    text = text.strip()
    return text if _SIMPLE.fullmatch(text) else f"({text})"


def _symbol(found: re.Match[str]) -> str:
    symbol = _SYMBOLS.get(found[1])
    return f"{symbol}{found[2]}" if symbol is not None else f"{found[1]}{found[2]}"
