"""Rendering of reports about audits, for people and programs; comparison of stored audits."""
