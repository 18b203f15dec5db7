"""Tests of the service: real servers on loopback ports and real clients."""
