#pragma once
/* The server's side of SOCKS 5 (RFC 1928) without authentication, as far as CONNECT. Pure. */
#include <stdint.h>

#include "base/str.h"
#include "net/wire/rule.h"

enum socks_state { SOCKS_MORE, SOCKS_DONE, SOCKS_BAD };

enum socks_reply {
	SOCKS_OK = 0,
	SOCKS_FAILED = 1,
	SOCKS_DENIED = 2,
	SOCKS_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_COMMAND = 7, /* is not supported */
	SOCKS_TYPE = 8, /* of address is not supported */
};

enum { SOCKS_METHOD_BYTES = 2, SOCKS_REPLY_BYTES = 10 };

/* What a client offers; ret is the answer, also to one that offers what we don't have (BAD).
 * *ret_n: bytes that it took. */
enum socks_state socks_read_methods(struct str bytes, size_t *ret_n,
				    uint8_t ret[SOCKS_METHOD_BYTES]);

/* The request. The host is a text, also if it came as an address, and may be no name at all. *reply
 * is what a bad one is to be told. */
struct socks_request {
	size_t n;
	char host[256];
	uint16_t port;
	enum socks_reply reply;
};
enum socks_state socks_read_request(struct str bytes, struct socks_request *ret);

void socks_write_reply(enum socks_reply reply, uint8_t ret[SOCKS_REPLY_BYTES]);
