#pragma once
/*
 * The id of a request that can't be parsed, or is too large for it, so that its error can say which
 * request it is for: clients would wait for ever otherwise. Reads a text in pieces and keeps a few
 * bytes of it. Nothing is validated but that brackets match; where the text is not one object, or
 * has no method (it answers a request of ours then), or has two ids, there is no id.
 */
#include "rpc/rpc.h"

enum { SNIFF_ROOM = RPC_ID_MAX + 8 };

struct rpc_sniff {
	unsigned depth; /* of brackets */
	bool in_string, escaped;
	bool key_next; /* at depth 1: a string here would be a key */
	bool in_key, in_value; /* kept bytes are of a key or of the value of "id" */
	bool method, twice, broken;
	bool over; /* the object has ended */
	unsigned short n; /* of kept; more than SNIFF_ROOM bytes are not counted */
	unsigned short id_n; /* of id; 0: none yet */
	char kept[SNIFF_ROOM];
	char id[SNIFF_ROOM]; /* as it stands in the text */
};

/* A zeroed structure is ready. */
void rpc_sniff_feed(struct rpc_sniff *s, struct str piece);

/* At the end of the text. *ret is none where there is no id. */
void rpc_sniff_id(const struct rpc_sniff *s, struct rpc_id *ret);

/* The same for an answer: of a text that has no method. */
void rpc_sniff_answer_id(const struct rpc_sniff *s, struct rpc_id *ret);
