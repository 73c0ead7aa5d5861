"""How far the tests go that repeat something many times or move much: a tenth of the way, or all of
it with HOLT_SOAK=full (`make soak`). The engine's tests ask soak() of tests/engine/engine.h.
WHOLE: `make test-all` (HOLT_SOAK=whole) and `make soak` also run what has the mark `whole`, which
asks in another way what a cheaper test asks.
"""

import os

FULL = os.environ.get('HOLT_SOAK') == 'full'
WHOLE = FULL or os.environ.get('HOLT_SOAK') == 'whole'


def soak(full, least=1):
    return full if FULL else max(full // 10, least)
