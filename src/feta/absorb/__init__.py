"""Fitted preprocessing absorbed into a network's first layer, which then reads raw units."""
