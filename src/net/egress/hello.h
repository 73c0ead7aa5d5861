#pragma once
/*
 * Which host a TLS handshake is for (RFC 8446 section 4.1.2, RFC 6066 section 3), read from the
 * plain messages that begin it. Pure functions over bytes that strangers wrote; whatever is not
 * plainly right is wrong. They start from the first byte each time, in bounded work.
 *
 * One ClientHello is not enough: a server may answer it with a HelloRetryRequest, and the second
 * one may name another host. So nothing that follows the first may pass before the server has
 * spoken.
 */
#include <stdbool.h>

#include "base/str.h"
#include "net/wire/rule.h"

enum { HELLO_MAX = 32 * 1024 /* of all records until the end of a ClientHello */ };

enum hello_state { HELLO_MORE, HELLO_DONE, HELLO_BAD };

struct hello {
	size_t n; /* bytes of its records */
	bool has_name, ech;
	char name[NET_HOST_MAX]; /* lower case */
};

/* A ClientHello that begins with the bytes. HELLO_BAD too if the record of its end has more. */
enum hello_state hello_read(struct str bytes, struct hello *ret);

/* The same for what a client sends after a HelloRetryRequest: records of ChangeCipherSpec and of
 * early data come first. *ret_any is false if it is no ClientHello but an alert. */
enum hello_state hello_read_second(struct str bytes, struct hello *ret, bool *ret_any);

/* The first bytes of the server. HELLO_BAD if it can't be told. */
enum hello_state hello_read_server(struct str bytes, bool *ret_retry);
