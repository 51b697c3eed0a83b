"""Python values that plain JSON lacks (tuples, sets, bytes, complex numbers) across a jail's wall.

Used for assertion blocks, whose arguments and results are Python's own. The text `GATE` runs inside
the jail beside the candidate; what it says is the candidate's word, and only exact built-in types
are rebuilt outside.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prime_verifier_code import hashing

MAX_DEPTH = 150  # below what the jail itself lets through, tags included

# The same encoding on both sides: scalars and lists stay, everything else is a list in a dict of
# one key, the tag. Of a value that has no encoding nothing but its truth gets out.
GATE = """
def _prime_gate(
    type=type, list=list, tuple=tuple, set=set, frozenset=frozenset, dict=dict, complex=complex,
    bytes=bytes, str=str, bool=bool, int=int, float=float, isinstance=isinstance,
    Exception=Exception, globals=globals, getattr=getattr, hasattr=hasattr, len=len, repr=repr,
    range=range, iter=iter, enumerate=enumerate, all=all, map=map, filter=filter, zip=zip,
    reversed=reversed,
):
    import builtins, collections, itertools, sys, traceback

    islice, deque = itertools.islice, collections.deque
    dicts = (dict, collections.Counter, collections.OrderedDict, collections.defaultdict)
    views = {type({}.keys()): "k", type({}.values()): "v", type({}.items()): "m"}
    examples = [], (), set(), {}, {}.values(), {}.items(), "", b"", range(0), range(1 << 70)
    once = {type(iter(example)) for example in (*examples, deque())} | {
        type(_ for _ in ()), map, filter, zip, enumerate, reversed, type(reversed([]))
    }
    error_names = frozenset(
        name for name, kind in vars(builtins).items()
        if isinstance(kind, type) and issubclass(kind, Exception)
    )

    def encode(value, depth=0):
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if depth > 150:
            return Opaque(True)
        if kind is list:
            return [encode(item, depth + 1) for item in value]
        if kind is tuple or (isinstance(value, tuple) and hasattr(kind, "_fields")):
            return {"t": [encode(item, depth + 1) for item in tuple.__iter__(value)]}
        if kind is set or kind is frozenset:
            return {"s" if kind is set else "f": [encode(item, depth + 1) for item in value]}
        if kind is bytes:
            return {"b": list(value)}
        if kind is complex:
            return {"c": [value.real, value.imag]}
        if kind in dicts:
            items = dict.items(value)
            return {"d": [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in items]}
        if kind is range:
            return {"r": [value.start, value.stop, value.step]}
        if kind is deque:
            return {"q": [encode(item, depth + 1) for item in value]}
        if kind in views:
            return {views[kind]: [encode(item, depth + 1) for item in value]}
        if kind in once or kind.__module__ == "itertools":
            # What `list(f(x))` of an assertion would see; more is taken for endless.
            items = [encode(item, depth + 1) for item in islice(value, 10_001)]
            return {"i": items} if len(items) <= 10_000 else value
        return value

    def encode_error(error):
        # The nearest built-in exception, what it says, and its arguments where they're plain.
        names = [kind.__name__ for kind in type(error).__mro__ if kind.__name__ in error_names]
        try:
            text, args = str.__str__(str(error))[:1000], encode(list(error.args))
            args = args if is_plain(args) and len(repr(args)) < 4000 else [text]
        except Exception:
            text, args = "", []
        return [names[0], text, args]

    class Opaque:
        def __init__(self, truth):
            self.truth = truth

        def __bool__(self):
            return self.truth

    def decode(value):
        if type(value) is list:
            return [decode(item) for item in value]
        if type(value) is not dict:
            return value
        (tag, items), = value.items()
        if tag == "t":
            return tuple([decode(item) for item in items])
        if tag == "s":
            return set([decode(item) for item in items])
        if tag == "f":
            return frozenset([decode(item) for item in items])
        if tag == "b":
            return bytes(items)
        if tag == "c":
            return complex(items[0], items[1])
        if tag == "o":
            return Opaque(items[0])
        if tag == "r":
            return range(*items)
        if tag == "q":
            return deque([decode(item) for item in items])
        if tag == "k":
            return dict.fromkeys([decode(item) for item in items]).keys()
        if tag == "v":
            return dict(enumerate([decode(item) for item in items])).values()
        if tag == "m":
            return dict([decode(item) for item in items]).items()
        if tag == "i":
            return iter([decode(item) for item in items])
        return {decode(key): decode(item) for key, item in items}

    def call(name, args, kwargs):
        names = globals()
        owner = getattr(names.get("Solution"), name, None)
        if owner is not None:
            function = getattr(names["Solution"](), name)
        elif name in names:
            function = names[name]
        else:
            return {"missing": []}
        try:
            value = function(*decode(args), **decode(kwargs))
            encoded = encode(value)  # a generator's body runs here
        except Exception as error:
            traceback.print_exc(limit=-5)
            return {"raised": encode_error(error)}
        if is_plain(encoded):
            return {"value": [encoded]}
        return {"truth": [True if value else False]}

    def is_plain(value):
        if type(value) is list:
            return all([is_plain(item) for item in value])
        if type(value) is dict:
            return all([is_plain(item) for item in dict.values(value)])
        return value is None or type(value) in (bool, int, float, str)

    return encode, decode, call, Opaque


_prime_encode, _prime_decode, _prime_call, _PrimeOpaque = _prime_gate()
"""
ENTRY = "_prime_call"
ONCE: type[Any] = type(iter([]))  # what every iterator of a program becomes
MAX_RANGE = 1_000_000  # items; its length costs a program nothing
TAGS: dict[type, str] = {
    tuple: "t",
    set: "s",
    frozenset: "f",
    deque: "q",
    ONCE: "i",
    type({}.keys()): "k",
    type({}.values()): "v",
    type({}.items()): "m",
}


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """A result of which nothing but its truth is known: a match of a pattern, an object.

    It equals nothing, so an object that calls itself equal to everything gains nothing.
    """

    truth: bool

    def __bool__(self) -> bool:
        return self.truth


def encode(value: Any, depth: int = 0) -> Any:
    """A value of exact built-in types as plain JSON.

    Raises:
        ValueError: another type is inside, or it is nested too deep.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if depth > MAX_DEPTH:
        raise ValueError(f"a value nested more than {MAX_DEPTH} deep")
    if type(value) is list:
        return [encode(item, depth + 1) for item in value]
    if type(value) is bytes:
        return {"b": list(value)}
    if type(value) is Opaque:
        return {"o": [value.truth]}
    if type(value) is complex:
        return {"c": [value.real, value.imag]}
    if type(value) is range:
        return {"r": [value.start, value.stop, value.step]}
    if type(value) is dict:
        pairs = [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in value.items()]
        return {"d": pairs}
    tag = TAGS.get(type(value))
    if tag is None:
        raise ValueError(f"a {type(value).__name__} can't be handed to a program")
    return {tag: [encode(item, depth + 1) for item in value]}


def decode(value: Any, depth: int = 0) -> Any:
    """The value again.

    Raises:
        ValueError: a tag that `encode` never writes, a set of things that have no hash, or what
            `encode` couldn't write again; the other side may be hostile.
    """
    if type(value) in (list, tuple, dict) and depth > MAX_DEPTH:
        raise ValueError(f"a value nested more than {MAX_DEPTH} deep")
    if type(value) in (list, tuple):
        return [decode(item, depth + 1) for item in value]
    if type(value) is not dict:
        return value
    if len(value) != 1:
        raise ValueError("a value without a tag")
    ((tag, items),) = value.items()
    if type(items) not in (list, tuple):
        raise ValueError(f"the tag {tag!r} holds no list")
    try:
        return _decode_tagged(tag, items, depth + 1)
    except (TypeError, IndexError, OverflowError) as error:
        raise ValueError(f"the tag {tag!r} holds nonsense") from error


def _decode_tagged(tag: Any, items: Any, depth: int) -> Any:
    if tag == "b":
        return bytes(items)
    if tag == "c":
        real, imaginary = items
        return complex(real, imaginary)
    if tag == "d":
        pairs = [(decode(key, depth), decode(item, depth)) for key, item in items]
        return hashing.bounded_dict(pairs)
    if tag == "r":
        return _range(*items)
    maker = MAKERS.get(tag)
    if maker is None:
        raise ValueError(f"an unknown tag {str(tag)[:20]!r}")
    return maker([decode(item, depth) for item in items])


def _range(start: Any, stop: Any, step: Any) -> range:
    made = range(start, stop, step)
    # Its items come into being outside, where no limit of a jail holds.
    if max(map(abs, (start, stop, step))) >= 1 << 62 or len(made) > MAX_RANGE:
        raise ValueError("a very long range")
    return made


MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "t": tuple,
    "s": hashing.bounded_set,
    "f": hashing.bounded_frozenset,
    "q": deque,
    "i": iter,
    "k": lambda items: dict.fromkeys(hashing.bounded(items)).keys(),
    "v": lambda items: dict(enumerate(items)).values(),
    "m": lambda items: hashing.bounded_dict(items).items(),
}


def size(encoded: Any) -> int:
    """About how many characters an encoded value has as JSON."""
    if type(encoded) is list:
        return 2 + sum(1 + size(item) for item in encoded)
    if type(encoded) is dict:
        return 2 + sum(6 + size(item) for item in encoded.values())
    if type(encoded) is str:
        return 2 + len(encoded)
    return encoded.bit_length() // 3 + 2 if type(encoded) is int else 8
