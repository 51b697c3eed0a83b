"""One module per command group, nothing but argument parsing and calls."""
