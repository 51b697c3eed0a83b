"""The worker: from an assignment to a submission."""
