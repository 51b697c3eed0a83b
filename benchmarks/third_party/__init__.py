"""What the conformance ladder says of other people's data sets, through a thin adapter."""
