"""What proxies carry: dropped columns, votes and fair training on people with a known answer."""
