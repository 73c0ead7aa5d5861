#pragma once
/* SHA-256 of a text that is at hand. For much of it, or what comes in parts, base/hash.h is several
 * times as fast, once its library is loaded. */
#include "base/str.h"

enum { SHA256_HEX = 65 };

/* Lower-case hex, with NUL. */
void sha256_hex(struct str bytes, char ret[SHA256_HEX]);
