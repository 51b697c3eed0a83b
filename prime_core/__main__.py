"""`python -m prime_core` is `prime-core`."""

from prime_core.cli.main import main

main()
