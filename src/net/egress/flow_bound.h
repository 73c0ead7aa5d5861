#pragma once
/* A connection within which requests are looked into, for flow_bound.c and flow_tokens.c alone. */
#include <gnutls/gnutls.h>

#include "net/egress/answer.h"
#include "net/egress/flow.h"

enum {
	PIECE = 16 * 1024, /* of a body, and of TLS */
	WHOLE_MAX = 16 * 1024, /* bodies up to here keep their length */
	OUT_MAX = 128 * 1024, /* of a head, with what is put into it */
	TAIL_MAX = 64 * 1024, /* of a body, with what may begin a secret */
	TURNS = 64, /* before others have theirs */
};

enum bound_step {
	STEP_REQUEST, /* the client's */
	STEP_TURN, /* another request for tokens of the log-in comes first */
	STEP_PERSON, /* who is asked about it is waited for */
	STEP_HEAD, /* of the answer */
	STEP_WHOLE, /* a short body is waited for */
	STEP_BODY,
	STEP_TOKENS, /* the hub keeps those of the answer */
};

struct bound_end {
	gnutls_session_t tls; /* NULL: none, it is plain HTTP */
	bool ready; /* the handshake is done */
	bool ended; /* it says nothing more */
	bool cut; /* and that without saying so */
};

struct bound {
	struct bound_end client, server;
	struct buf in, from; /* what they have said */
	struct buf tail; /* of the answer's body: not yet scrubbed */
	size_t scanned; /* of from */
	enum bound_step step;
	bool bodiless, old, last; /* the request: HEAD, HTTP/1.0, the last one */
	struct body body; /* of the answer */
	bool until_end; /* of the connection */
	bool chunks; /* it is passed on in such */
	size_t want; /* bytes of the head and a short body */
	bool told_secret[NW_SECRETS_MAX], more;
	enum nw_reason refuse; /* why the host is not spoken to */
	char why[256];
	struct tokens *tokens; /* the request is for such; NULL: it is not */
	gnutls_typed_vdata_st must_be[2]; /* the host */
};

/* ---- flow_bound.c ---------------------------------------------------------------------------- */

/* Each gives false when the flow must not be touched any more. */
bool flow_bound_up(struct flow *f, struct str bytes); /* to the server */
bool flow_bound_down(struct flow *f, struct str bytes); /* to the client */
bool flow_bound_broken(struct flow *f);
bool flow_bound_bad_answer(struct flow *f, const char *why);
/* The head for the client, of an answer whose body is n bytes if the frame has a length. */
bool flow_bound_head(struct flow *f, const struct answer *a, enum answer_frame frame, uint64_t n);
bool flow_bound_end_answer(struct flow *f);
/* The request with its secrets in it. */
bool flow_bound_send(struct flow *f, const struct request *r);

/* ---- flow_tokens.c --------------------------------------------------------------------------- */

/* Looks whether a request is for tokens of a log-in. TAKEN: all is done for now. */
enum flow_tokens { FLOW_TOKENS_NONE, FLOW_TOKENS_READ, FLOW_TOKENS_TAKEN, FLOW_TOKENS_GONE };
enum flow_tokens flow_tokens_read(struct flow *f, const struct request *r);
/* Sends one that was READ, or lets it wait for its turn. */
bool flow_tokens_send(struct flow *f, const struct request *r, bool *moved);
/* A good answer to it. */
bool flow_tokens_answer(struct flow *f, const struct answer *a, bool *moved);
/* It is no request for tokens any more. */
void flow_tokens_end(struct bound *b);
