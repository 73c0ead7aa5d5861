#pragma once
/*
 * Encodes any text for an HTTP header: unchanged if it is plain ASCII, else in base64 between
 * marks. MCP 2026-07-28, basic/transports/streamable-http, "Value Encoding".
 */
#include "base/buf.h"

enum { MCP_HEADER_TEXT_MAX = 8192 }; /* bytes of a text that is encoded */

/* Owned, NUL-terminated. NULL with ERR_TOO_LARGE or ERR_LIMIT. */
char *mcp_header_encode(struct str text, struct err *e) MUST_USE;

/* False if the header is not validly encoded. *ret is borrowed from header or from room. */
bool mcp_header_decode(struct str header, struct buf *room, struct str *ret);
