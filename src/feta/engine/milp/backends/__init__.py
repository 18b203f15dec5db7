"""One solver a file, imported when it is used."""
