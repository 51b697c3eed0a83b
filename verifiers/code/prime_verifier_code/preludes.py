"""Names that a program may use without importing them, as the platforms of these problems do.

Run inside the jail before the program, in its namespace; whatever the program defines comes later
and wins.
"""

from __future__ import annotations

from prime_verifier_code.problem import Prelude

# Plain imports of names, no star imports of math or operator: those would hide pow, abs and sum.
PRELUDES: dict[Prelude, str] = {
    "none": "",
    "typing": "from typing import *\n",
    "stdlib": (
        "import bisect, collections, copy, datetime, functools, heapq, itertools, math, operator\n"
        "import random, re, statistics, string, sys, time\n"
        "from bisect import bisect_left, bisect_right, insort\n"
        "from collections import Counter, OrderedDict, defaultdict, deque, namedtuple\n"
        "from copy import deepcopy\n"
        "from functools import cache, cmp_to_key, lru_cache, reduce\n"
        "from heapq import heapify, heappop, heappush, heappushpop, nlargest, nsmallest\n"
        "from itertools import (\n"
        "    accumulate, chain, combinations, count, cycle, groupby, permutations, product,\n"
        "    zip_longest,\n"
        ")\n"
        "from math import ceil, comb, factorial, floor, gcd, inf, isqrt, lcm, log, log2, sqrt\n"
        "from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits\n"
        "from typing import *\n"
    ),
}
