"""How remote bytes are moved: the network's loop, requests and their repetition, reading ahead, uploads."""
