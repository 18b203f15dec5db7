"""Models as exact real functions of an encoded person."""
