#pragma once
/* SHA-256 of a text that is at hand. For much of it, or what comes in parts, base/hash.h is several
 * times as fast, once its library is loaded. */
#include "base/str.h"

enum { SHA256_HEX = 65, SHA256_BYTES = 32 };

/* Lower-case hex, with NUL. */
void sha256_hex(struct str bytes, char ret[SHA256_HEX]);

/* The hash of a text in parts; a copy goes on from where it was copied. */
struct sha256 {
	_Alignas(8) unsigned char state[104];
};
void sha256_begin(struct sha256 *h);
void sha256_add(struct sha256 *h, struct str bytes);
void sha256_end(struct sha256 *h, unsigned char ret[SHA256_BYTES]);
