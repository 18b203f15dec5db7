"""The default handler of SIGINT, which background jobs and their children would ignore."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
