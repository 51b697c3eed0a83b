"""The validator: judges submissions by the selected sanity checks, and calibrates them."""
