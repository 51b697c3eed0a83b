"""The words of the grammar: commands by their one name, functions, joiners, fillers.

Read by the lexer and the parsers; a word that stands in no table is a variable, a unit or text.
"""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """A set of words."""
    return frozenset(text.split())


RENAMED = {
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "nicefrac": "frac", "dbinom": "binom",
    "tbinom": "binom", "leq": "le", "leqslant": "le", "leqq": "le", "geq": "ge", "geqslant": "ge",
    "geqq": "ge", "neq": "ne", "lt": "<", "gt": ">", "lbrack": "[", "rbrack": "]",
    "lparen": "(", "rparen": ")", "varnothing": "emptyset", "O": "emptyset", "dots": "ldots",
    "cdots": "ldots", "dotsc": "ldots", "dotsb": "ldots", "hdots": "ldots", "bullet": "cdot",
    "ast": "cdot", "lbrace": "{", "rbrace": "}", "vert": "|", "lvert": "|", "rvert": "|",
    "varphi": "phi", "vartheta": "theta", "varepsilon": "epsilon", "varrho": "rho",
    "colon": ":", "simeq": "approx", "thickapprox": "approx", "cong": "approx", "sim": "approx",
    "backslash": "setminus", "smallsetminus": "setminus", "tg": "tan", "ctg": "cot", "cotg": "cot",
    "arctg": "arctan", "arcsec": "arcsec", "infin": "infty", "infinity": "infty", "isin": "in",
    "overbar": "overline", "bar": "overline", "percent": "%", "degrees": "degree", "deg": "degree",
    "wedge": "land", "vee": "lor", "implies": "to", "Rightarrow": "to", "rightarrow": "to",
    "longrightarrow": "to", "dollar": "$", "textdollar": "$", "pounds": "pounds", "euro": "euro",
    "euros": "euro", "union": "cup", "bigcup": "cup", "limits": "", "/": "",
}  # fmt: skip

FUNCTIONS = words(
    "sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan arccot arcsec arccsc "
    "arsinh arcosh artanh ln log exp lg"
)
# words that mean a command without a backslash
WORD_COMMANDS = {
    **{name: name for name in FUNCTIONS},
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "sqrt": "sqrt", "cbrt": "cbrt",
    "abs": "abs", "pi": "pi", "Pi": "pi", "theta": "theta", "alpha": "alpha", "beta": "beta",
    "gamma": "gamma", "lambda": "lambda", "infty": "infty", "oo": "infty", "infinity": "infty",
    "inf": "infty", "floor": "floor", "ceil": "ceil", "gcd": "gcd", "lcm": "lcm", "lim": "lim",
    "mod": "bmod", "max": "max", "min": "min", "det": "det",
    "binom": "binom", "factorial": "factorial", "frac": "frac", "percent": "%", "percentage": "%",
    "emptyset": "emptyset", "sgn": "sgn",
}  # fmt: skip

GREEK = words(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Phi Psi Omega ell hbar "
    "Re Im partial nabla"
)

# commands whose argument is text
TEXT_COMMANDS = words(
    "text textbf textit textrm textsf texttt textnormal textup textsc textmd emph mbox hbox "
    "mathrm mathsf mathtt mathit mathbf boldsymbol bm mathcal operatorname underline mathop "
    "fbox boxed textsl mathrel mathord small"
)

JOINERS = frozenset(("and", "or", "&"))

# a question restated, not an answer (DESIGN: an unevaluated integral, sum, gcd or limit)
RESTATED = words(
    "int iint iiint oint sum prod lim limsup liminf gcd lcm max min sup inf det bmod pmod mod "
    "arg argmax argmin deriv"
)

# words that announce an answer and carry nothing
FILLERS = words(
    "the a an final answer answers is are was be equals equal to it thus so hence therefore "
    "approximately about approx roughly around exactly simply just value values result total "
    "solution solutions of our option choice correct clearly then we get have obtain that this "
    "which given by namely only all real x y n"
)

_VARIABLES = frozenset("abcdkmnpqrstuvwxyz")
_SHORT = words("no up on is of to if or so we us do he")


def is_text(word: str) -> bool:
    """Whether a run of letters is a word: no product of usual variables, no name in capitals."""
    if len(word) == 2:
        return word.lower() in _SHORT or word.isupper()
    if len(set(word)) == len(word) and len(word) <= 4 and set(word) <= _VARIABLES:
        return any(char in "aeiou" for char in word) and sorted(word) != list(word)
    return True
