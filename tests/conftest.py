"""Signals as at a terminal: where the tests run in the background, Ctrl-C is ignored, also by what they start."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
