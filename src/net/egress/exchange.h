#pragma once
/*
 * Bodies of requests for tokens (RFC 6749): forms, and flat JSON objects as some servers want them.
 * They are read so strictly that no server finds other members in the same bytes. Pure functions
 * over bytes that strangers wrote.
 */
#include "net/egress/swap.h"

enum { EXCHANGE_MEMBERS_MAX = 24 };

/* Borrows from the bytes. */
struct exchange {
	bool json;
	size_t n;
	struct exchange_member {
		struct str name;
		struct str value; /* of a form: as it is escaped; of JSON: without quotes */
		bool bare; /* a number or a word of JSON */
	} of[EXCHANGE_MEMBERS_MAX];
};

/* type: the request's Content-Type. NULL, or why it is none: borrowed for ever. */
const char *exchange_read(struct str type, struct str body, struct exchange *ret);

/* Whether it asks for new tokens by a refresh token, and by nothing else. *ret_token: it. */
bool exchange_refreshes(const struct exchange *x, struct str *ret_token);

/* The same body. Where a text of swaps is all of a value, that is replaced. */
int exchange_write(const struct exchange *x, const struct swaps *swaps, struct buf *out,
		   struct err *e) MUST_USE;
