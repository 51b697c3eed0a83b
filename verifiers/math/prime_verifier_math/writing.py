"""One writing for many: Unicode mathematics becomes LaTeX, markup and spacing commands go.

Called on every gold and every extracted answer before tokens are made; linear in the text.
"""

from __future__ import annotations

import re
import unicodedata

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿˣ⁽⁾ⁱ", "0123456789+-nx()i", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉ₙₓᵢₖ", "0123456789nxik", strict=True))
_FRACTIONS = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5),
    "⅗": (3, 5), "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅐": (1, 7), "⅛": (1, 8), "⅜": (3, 8),
    "⅝": (5, 8), "⅞": (7, 8), "⅑": (1, 9), "⅒": (1, 10), "↉": (0, 3),
}  # fmt: skip
_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ϵ": "epsilon",
    "ζ": "zeta", "η": "eta", "θ": "theta", "ϑ": "theta", "κ": "kappa", "λ": "lambda", "μ": "mu",
    "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "ϕ": "phi",
    "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta",
    "Λ": "Lambda", "Σ": "Sigma", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
_COMMANDS = {
    "∞": "infty", "∪": "cup", "∩": "cap", "∈": "in", "∉": "notin", "∅": "emptyset",
    "⌀": "emptyset", "Ø": "emptyset", "≤": "le", "⩽": "le", "≦": "le", "≥": "ge", "⩾": "ge",
    "≧": "ge", "≠": "ne", "≈": "approx", "≃": "approx", "≅": "approx", "±": "pm", "∓": "mp",
    "×": "times", "✕": "times", "⋅": "cdot", "·": "cdot", "∙": "cdot", "•": "cdot", "÷": "div",
    "√": "uniroot", "∛": "unicuberoot", "∜": "unifourthroot", "°": "degree", "º": "degree",
    "∫": "int", "∑": "sum", "∏": "prod", "…": "ldots", "⋯": "ldots", "ℝ": "reals",
    "ℤ": "integers", "ℕ": "naturals", "ℚ": "rationals", "ℂ": "complexes", "∖": "setminus",
    "⟨": "langle", "⟩": "rangle", "∣": "mid", "≡": "equiv", "→": "to", "′": "prime", "⌊": "lfloor",
    "⌋": "rfloor", "⌈": "lceil", "⌉": "rceil", "∠": "angle", "∧": "land", "∨": "lor",
}  # fmt: skip
_PLAIN = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "‒": "-", "﹣": "-", "－": "-", "∕": "/",
    "⁄": "/", "∶": ":", "∗": "*", "‘": "'", "’": "'", "“": '"', "”": '"', "，": ",", "；": ";",
    "：": ":", "（": "(", "）": ")", "【": "[", "】": "]", "｛": r"\{", "｝": r"\}", "＝": "=",
    "。": ".", "、": ",", "％": "%", "＄": "$", "¢": r"\text{ cents}", "€": r"\euro ",
    "£": r"\pounds ", "¥": r"\yen ", "₹": r"\rupee ",
}  # fmt: skip
_SPACES = (
    "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)
_TICKS = "✓✔✅☑\ufe0f"  # said of an answer, no part of it
_NOTHING = _TICKS + "\u200b\u200c\u200d\u2060\ufeff\u00ad\u2061\u2062\u2063\u2064"


def _table() -> dict[int, str]:
    table = {char: f"\\{name} " for char, name in {**_GREEK, **_COMMANDS}.items()}
    table.update({char: f"\\frac{{{a}}}{{{b}}}" for char, (a, b) in _FRACTIONS.items()})
    table.update(_PLAIN)
    table.update(dict.fromkeys(_SPACES, "\\,"))
    table.update(dict.fromkeys(_NOTHING, ""))
    return {ord(char): text for char, text in table.items()}


_TABLE = _table()
_RAISED = re.compile("[" + "".join(_SUPERSCRIPTS) + "]+")
_LOWERED = re.compile("[" + "".join(_SUBSCRIPTS) + "]+")
_OVERLINED = re.compile("(?:[0-9][\u0304\u0305])+")
_DOTTED = re.compile("([0-9])\u0307")


def _raised(match: re.Match[str]) -> str:
    return "^{" + "".join(_SUPERSCRIPTS[char] for char in match[0]) + "}"


def _lowered(match: re.Match[str]) -> str:
    return "_{" + "".join(_SUBSCRIPTS[char] for char in match[0]) + "}"


def _overlined(match: re.Match[str]) -> str:
    return "\\overline{" + match[0].replace("\u0305", "").replace("\u0304", "") + "}"


def to_latex(text: str) -> str:
    """The text with Unicode mathematics as LaTeX; ASCII text comes back as it is."""
    if text.isascii():
        return text
    text = _OVERLINED.sub(_overlined, text)
    text = _DOTTED.sub(r"\\dot{\1}", text)
    text = _RAISED.sub(_raised, text)
    text = _LOWERED.sub(_lowered, text)
    text = text.translate(_TABLE)
    if text.isascii():
        return text
    # what is left: full-width and mathematical alphanumerics become plain, the rest stays
    return unicodedata.normalize("NFKC", text).translate(_TABLE)


_STYLES = re.compile(
    r"\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits|left|right|bigl|bigr|Bigl|Bigr|"
    r"biggl|biggr|Biggl|Biggr|big|Big|bigg|Bigg|middle|boldmath|unboldmath|rm|bf|it|sf|tt|"
    r"therefore|checkmark|normalsize|large|Large|small|tiny|noindent|hfill|cr|allowbreak|nobreak)(?![A-Za-z])\.?"
)
_GAPS = re.compile(
    r"\\(?:quad|qquad|enspace|thinspace|medspace|thickspace|hspace\*?\{[^{}]*\}|vspace\*?\{[^{}]*\}|hphantom\{[^{}]*\}|vphantom\{[^{}]*\}|phantom\{[^{}]*\}|phantom|mathstrut|strut)(?![A-Za-z])"
)
_COLOURS = re.compile(r"\\(?:text)?color\s*\{[^{}]*\}|\\ensuremath(?![A-Za-z])")
_DELIMITERS = re.compile(r"(?<!\\)\\[\[\]()]")
_MARKDOWN = re.compile(r"\*\*|__(?=\S)|`+")


def tidy(text: str) -> str:
    """The text in one writing: LaTeX, without math delimiters, sizes, styles and markdown."""
    text = to_latex(text).strip()
    if "\\" in text:
        if "color" in text or "ensuremath" in text:
            text = _COLOURS.sub("", text)
        text = _STYLES.sub(" ", text)
        if "space" in text or "quad" in text or "phantom" in text or "strut" in text:
            text = _GAPS.sub(" ", text)
        text = text.replace("\\!", "").replace("\\/", "") if ",\\!" not in text else text
        text = _DELIMITERS.sub(" ", text)
    if "*" in text or "`" in text or "__" in text:
        text = _MARKDOWN.sub("", text) if "__import__" not in text else text
    if "{.}" in text or "{:}" in text:
        text = text.replace("{.}", ".").replace("{:}", ":")
    if "and/or" in text:
        text = text.replace("and/or", "or")
    if "..." in text:
        text = _DOTS.sub(r"\\ldots ", text)
    if "=" in text:
        text = _COMPARED.sub(_compared, text)
    if ".\\" in text:
        text = _BARE_BAR.sub(r"0.\\\1", text)
    if "$" in text:
        text = _without_dollars(text)
    return text.strip()


_DOTS = re.compile(r"\.{3,}")
_COMPARED = re.compile(r">=|<=|=<|==| != |=>")
_BARE_BAR = re.compile(r"(?<![\d.])\.\\(overline|bar|dot)(?![A-Za-z])")
_COMPARISONS = {
    ">=": "\\ge ",
    "<=": "\\le ",
    "=<": "\\le ",
    "==": "=",
    " != ": "\\ne ",
    "=>": "\\to ",
}


def _compared(match: re.Match[str]) -> str:
    return _COMPARISONS[match[0]]


def _without_dollars(text: str) -> str:
    """Math delimiters go; `\\$` and a dollar sign before a number are money and stay."""
    text = text.replace("\\$", "\x01")
    count = text.count("$")
    text = text.replace("$", "\x01", 1) if count == 1 else text.replace("$$", " ").replace("$", " ")
    return text.replace("\x01", "\\$")
