#pragma once
/* SHA-1 (RFC 3174), only for the handshake of RFC 6455. It protects nothing. */
#include "base/str.h"

enum { SHA1_BYTES = 20, SHA1_TEXT_MAX = 119 };

/* text: at most SHA1_TEXT_MAX bytes, which is two blocks. */
void sha1(struct str text, unsigned char ret[SHA1_BYTES]);
