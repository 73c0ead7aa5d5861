"""How far the tests go that repeat something many times or move much: a tenth of the way, or all of
it with HOLT_SOAK=full (`make soak`). The engine's tests ask soak() of tests/engine/engine.h.
"""

import os

FULL = os.environ.get('HOLT_SOAK') == 'full'


def soak(full, least=1):
    return full if FULL else max(full // 10, least)
