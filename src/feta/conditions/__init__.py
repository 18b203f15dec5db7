"""Conditions on people: one grammar, one parser, one exact evaluation."""
