#pragma once
/* Base64, RFC 4648 section 4: standard alphabet, padded, no line breaks. */
#include "base/arena.h"
#include "base/buf.h"

/* Appends the text of bytes. -1 from the buffer. */
int base64_encode(struct buf *to, struct str bytes, struct err *e) MUST_USE;

/* Appends the decoded bytes. ERR_INVALID names the position that is not base64; other errors come
 * from the buffer. */
int base64_decode(struct buf *to, struct str text, struct err *e) MUST_USE;
/* The decoded bytes take the place of the text, in the arena. */
int base64_replace(struct str *text, struct arena *a, struct err *e) MUST_USE;

/* Section 5, the alphabet of URLs, without padding: what JSON Web Signatures and PKCE use. */
int base64url_encode(struct buf *to, struct str bytes, struct err *e) MUST_USE;
