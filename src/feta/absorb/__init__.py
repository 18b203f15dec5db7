"""Absorb: fitted preprocessing made part of a network's first layer, in people's own units."""
