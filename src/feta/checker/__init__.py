"""The trusted part: slow, plain, and without any engine or solver."""
