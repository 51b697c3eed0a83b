"""The environment variables of a host: an allow-list, and a few that are fixed.

Used when a host is started. Invariant: no secret of the pool's process reaches a host, and what
changes results (hash seed, locale, time zone, threads) is the same for every host.
"""

from __future__ import annotations

from collections.abc import Mapping

FIXED = {
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "SYMPY_GROUND_TYPES": "python",  # gmpy2 changes which expressions sympy can finish
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",  # address space is limited, and every arena reserves 64 MiB of it
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",  # the devices belong to engine and trainer
}

ALLOWED = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "XDG_CONFIG_HOME",
        "PRIME_CORE_CACHE",
        "PRIME_CORE_OFFLINE",
        "HF_HOME",
        "HF_HUB_CACHE",
        "HF_HUB_OFFLINE",
        "HF_DATASETS_CACHE",
        "HF_DATASETS_OFFLINE",
        "NLTK_DATA",
        "NSJAIL",
        "BWRAP",
    }
)

PROXIES = frozenset(
    name
    for base in ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
    for name in (base, base.upper())
)


def host_variables(parent: Mapping[str, str], *, same_interpreter: bool) -> dict[str, str]:
    """The environment of a host that is started from a process with the environment `parent`.

    A proxy address with credentials stays out. PYTHONPATH belongs to an interpreter, so that it's
    handed on to the same one only.
    """
    allowed = {name: value for name, value in parent.items() if name in ALLOWED}
    proxies = {
        name: value for name, value in parent.items() if name in PROXIES and "@" not in value
    }
    path = {}
    if same_interpreter and "PYTHONPATH" in parent:
        path["PYTHONPATH"] = parent["PYTHONPATH"]
    return allowed | proxies | path | FIXED
