"""Units of measure: a name, its size in base units, and its dimensions.

`parse_unit` reads the words behind a number; what is in no table is a counted noun. Units are
compared by dimension and converted exactly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

Dimensions = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """`factor` base units of `dimensions`; a counted noun has neither and keeps its name."""

    name: str
    factor: Fraction = Fraction(1)
    dimensions: Dimensions = ()
    minor: bool = False  # cents: a bare number never means these

    @property
    def measured(self) -> bool:
        """Whether it is in the table."""
        return bool(self.dimensions)


def _table() -> dict[str, tuple[Fraction, str, int]]:
    """Names to (size, base, power of the base)."""
    rows: list[tuple[str, str, int, str]] = [
        # size, base, power, names
        ("1", "length", 1, "m meter metre meters metres"),
        ("1/1000", "length", 1, "mm millimeter millimetre millimeters millimetres"),
        ("1/100", "length", 1, "cm centimeter centimetre centimeters centimetres"),
        ("1/10", "length", 1, "dm decimeter decimeters decimetre decimetres"),
        ("1000", "length", 1, "km kilometer kilometre kilometers kilometres kms"),
        ("1/1000000", "length", 1, "micrometer micrometers micron microns"),
        ("1/1000000000", "length", 1, "nm nanometer nanometers nanometre nanometres"),
        ("127/5000", "length", 1, "in inch inches"),
        ("381/1250", "length", 1, "ft foot feet"),
        ("1143/1250", "length", 1, "yd yds yard yards"),
        ("201168/125", "length", 1, "mi mile miles"),
        ("1", "time", 1, "s sec secs second seconds"),
        ("1/1000", "time", 1, "ms millisecond milliseconds"),
        ("60", "time", 1, "min mins minute minutes"),
        ("3600", "time", 1, "h hr hrs hour hours"),
        ("86400", "time", 1, "day days"),
        ("604800", "time", 1, "week weeks wk wks"),
        ("1", "month", 1, "month months"),
        ("12", "month", 1, "year years yr yrs"),
        ("1", "mass", 1, "g gram grams gramme grammes"),
        ("1/1000", "mass", 1, "mg milligram milligrams"),
        ("1000", "mass", 1, "kg kilogram kilograms kilo kilos kgs"),
        ("1000000", "mass", 1, "tonne tonnes"),
        ("45359237/100000", "mass", 1, "lb lbs pound pounds"),
        ("45359237/1600000", "mass", 1, "oz ounce ounces"),
        ("45359237/50", "mass", 1, "ton tons"),
        ("1/1000", "length", 3, "l liter litre liters litres"),
        ("1/1000000", "length", 3, "ml milliliter millilitre milliliters millilitres cc"),
        ("473176473/125000000000", "length", 3, "gal gallon gallons"),
        ("473176473/500000000000", "length", 3, "qt quart quarts"),
        ("473176473/1000000000000", "length", 3, "pt pint pints"),
        ("473176473/2000000000000", "length", 3, "cup cups"),
        ("10000", "length", 2, "hectare hectares"),
        ("316160658/78125", "length", 2, "acre acres"),
        ("1", "angle", 1, "degree degrees deg degs"),
        ("1/60", "angle", 1, "arcmin arcminute arcminutes"),
        ("1/100", "money", 1, "cent cents penny pennies"),
        ("1/20", "money", 1, "nickel nickels"),
        ("1/10", "money", 1, "dime dimes"),
        ("1/4", "money", 1, "quarter quarters"),
        ("1", "money", 1, "dollar dollars usd bucks buck"),
        ("1", "euro", 1, "euro euros eur"),
        ("1", "sterling", 1, "gbp sterling"),
        ("1/100", "sterling", 1, "pence"),
        ("1", "yen", 1, "yen"),
        ("1", "rupee", 1, "rupee rupees rs inr"),
        ("1", "yuan", 1, "yuan rmb"),
        ("1", "temperature C", 1, "celsius centigrade"),
        ("1", "temperature F", 1, "fahrenheit"),
        ("1", "temperature K", 1, "kelvin kelvins"),
        ("1", "radian", 1, "rad rads radian radians"),
        ("1", "force", 1, "newton newtons"),
        ("1", "energy", 1, "joule joules"),
        ("1000", "energy", 1, "kj kilojoule kilojoules"),
        ("1", "power", 1, "watt watts"),
        ("1000", "power", 1, "kw kilowatt kilowatts"),
        ("1", "voltage", 1, "volt volts"),
        ("1", "current", 1, "amp amps ampere amperes"),
        ("1", "frequency", 1, "hz hertz"),
        ("1", "pressure", 1, "pascal pascals"),
        ("1", "amount", 1, "mol mole moles"),
    ]  # fmt: skip
    table = {}
    for size, base, power, names in rows:
        for name in names.split():
            table[name] = (Fraction(size), base, power)
    return table


_UNITS = _table()
# one-letter abbreviations and their case; "M" or "S" alone are no units
_LETTERS = {"m": "m", "s": "s", "h": "h", "g": "g", "l": "l", "L": "l", "N": "newton",
            "J": "joule", "W": "watt", "V": "volt", "A": "amp", "K": "kelvin"}  # fmt: skip
_COMPOUND = {
    "mph": "mile/hour", "kph": "km/hour", "kmh": "km/hour", "kmph": "km/hour", "fps": "feet/sec",
    "rpm": "revolution/minute", "sqft": "square feet", "sqm": "square meter",
}  # fmt: skip
_MINOR = frozenset(
    name for name, (size, base, _) in _UNITS.items() if base in ("money", "sterling") and size < 1
)
_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cubed": 3, "cu": 3}
GENERIC = frozenset(("unit", "units"))
# one measure of time that has no fixed ratio to the others keeps its own base
SCALES = {
    "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "dozen": 12, "millions": 10**6, "billions": 10**9, "k": 1000,
}  # fmt: skip

_PART = re.compile(r"([A-Za-z]+)\.?\s*(?:\^\s*\{?\s*(-?\s*\d)\s*\}?)?|(/)|(\*)")
_WORDS = re.compile(r"[A-Za-z$]+")


def known_word(word: str) -> bool:
    """Whether a run of letters is the name of a unit or a scale."""
    lower = word.lower()
    return lower in _UNITS or lower in SCALES or lower in _COMPOUND or lower in _POWERS


def scale_of(text: str) -> tuple[int, str]:
    """The factor of leading scale words ("million"), and the text behind them."""
    factor = 1
    words = text.split()
    while words and words[0].strip(".,").lower() in SCALES and words[0] != "k":
        factor *= SCALES[words.pop(0).strip(".,").lower()]
    return factor, " ".join(words)


def parse_unit(text: str) -> Unit | None:
    """The unit that the words name: measured, or a counted noun; None for no words at all."""
    text = text.strip().strip(".,;:").strip()
    if not _WORDS.search(text):
        return None
    text = _COMPOUND.get(text.lower().replace(" ", "").replace(".", ""), text)
    measured = _measured(text)
    return measured if measured is not None else Unit(_noun(text))


def _measured(text: str) -> Unit | None:
    """Units with powers and one slash or "per"; None where a word isn't a unit."""
    factor = Fraction(1)
    dimensions: dict[str, int] = {}
    sign, pending, last = 1, 1, None
    minor = False
    for match in _PART.finditer(text):
        word, power = match[1], int("".join((match[2] or "1").split()))
        if word is None or word.lower() == "per" or word.lower() == "an" or word.lower() == "a":
            if match[3] or (word and word.lower() == "per"):
                sign = -1
            continue
        lower = word.lower()
        if lower == "cdot":
            continue
        if lower in _POWERS:
            if lower in ("squared", "cubed") and last is not None:
                _count(dimensions, last, (_POWERS[lower] - 1) * last[3])
                factor *= last[0] ** ((_POWERS[lower] - 1) * last[3])
            else:
                pending = _POWERS[lower]
            continue
        entry = _entry(word)
        if entry is None:
            return None
        minor |= lower in _MINOR
        exponent = sign * pending * power
        last = (*entry, sign)
        pending = 1
        factor *= entry[0] ** exponent
        _count(dimensions, last, exponent)
    named = tuple(sorted((base, count) for base, count in dimensions.items() if count))
    if not named:
        return None
    return Unit(" ".join(text.split())[:40], factor, named, minor)


def _entry(word: str) -> tuple[Fraction, str, int] | None:
    if len(word) == 1:
        name = _LETTERS.get(word)
        return _UNITS[name] if name else None
    return _UNITS.get(word.lower())


def _count(
    dimensions: dict[str, int], entry: tuple[Fraction, str, int, int], exponent: int
) -> None:
    dimensions[entry[1]] = dimensions.get(entry[1], 0) + entry[2] * exponent


def _noun(text: str) -> str:
    """A counted noun, singular and plural alike."""
    words = [word.lower() for word in _WORDS.findall(text)]
    return " ".join(word.removesuffix("s") for word in words)[:60]


DEGREE = Unit("degree", Fraction(1), (("angle", 1),))
RADIAN = Unit("radian", Fraction(1), (("radian", 1),))
DOLLAR = Unit("dollar", Fraction(1), (("money", 1),))
CURRENCIES = {
    "$": DOLLAR,
    "euro": Unit("euro", Fraction(1), (("euro", 1),)),
    "pounds": Unit("pound", Fraction(1), (("sterling", 1),)),
    "yen": Unit("yen", Fraction(1), (("yen", 1),)),
    "rupee": Unit("rupee", Fraction(1), (("rupee", 1),)),
}
