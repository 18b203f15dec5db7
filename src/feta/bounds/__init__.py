"""Bounds on neurons and scores over cells of counterparts, rounded outward."""
