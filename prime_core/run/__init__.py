"""The run on this machine: preparation, supervisor, report, demo."""
