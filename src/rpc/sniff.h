#pragma once
/*
 * Finds the id of a request that is too large or can't be parsed, so that the error can name the
 * request; without an id the client would wait for ever. Reads the text in pieces and stores a few
 * bytes of it. It checks only that brackets match. There is no id if the text is not one object,
 * has two ids, or has no method (then it answers one of our requests).
 */
#include "rpc/rpc.h"

enum { SNIFF_ROOM = RPC_ID_MAX + 8 };

struct rpc_sniff {
	unsigned depth; /* open brackets */
	bool in_string, escaped;
	bool key_next; /* at depth 1: a string here would be a key */
	bool in_key, in_value; /* kept holds a key, or the value of "id" */
	bool method, twice, broken;
	bool over; /* the object has ended */
	unsigned short n; /* bytes in kept; bytes above SNIFF_ROOM are not counted */
	unsigned short id_n; /* bytes in id; 0: none yet */
	char kept[SNIFF_ROOM];
	char id[SNIFF_ROOM]; /* as it stands in the text */
};

/* A zeroed structure is ready. */
void rpc_sniff_feed(struct rpc_sniff *s, struct str piece);

/* Call it at the end of the text. *ret is empty if there is no id. */
void rpc_sniff_id(const struct rpc_sniff *s, struct rpc_id *ret);

/* The same for the id of an answer, that is, of a text without a method. */
void rpc_sniff_answer_id(const struct rpc_sniff *s, struct rpc_id *ret);
