"""The environment `code`: programming problems, own procedural ones or of a data set."""
