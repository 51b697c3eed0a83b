"""The catalogue website: static pages for people, derived from the records like all pages."""
