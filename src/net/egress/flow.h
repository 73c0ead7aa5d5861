#pragma once
/*
 * One connection of a sandbox and the connection to what it asked for. For the files flow*.c alone.
 *
 *	flow.c		its life, its events, and the bytes once they may pass
 *	flow_ask.c	the explicit proxy: what is it to be connected to?
 *	flow_look.c	the first bytes, while the host is dialled
 *	flow_http.c	each request of a connection that speaks HTTP
 *	flow_tokens.c	those of them that get a log-in's tokens
 *	flow_bound.c	the same where secrets are bound to the host, and within TLS
 *	flow_deny.c	what a program is told that may not
 */
#include "net/egress/ech.h"
#include "net/egress/internal.h"

enum flow_state {
	FLOW_ASK,
	FLOW_LOOK, /* until the first bytes are checked and the host is connected */
	FLOW_HELLO, /* the first ClientHello is sent: is the server content with it? */
	FLOW_HELLO_AGAIN, /* no: the second one is to be checked */
	FLOW_HTTP,
	FLOW_BOUND, /* see flow_bound.c */
	FLOW_RAW, /* nothing is looked at any more */
	FLOW_LINGER, /* it was denied; it gets the time to read why */
};

enum flow_speaks { SPEAKS_UNKNOWN, SPEAKS_RAW, SPEAKS_TLS, SPEAKS_HTTP };

/* How the explicit proxy was asked. */
enum flow_via { VIA_ADDRESS, VIA_PROXY /* not yet known */, VIA_HTTP, VIA_CONNECT, VIA_SOCKS };

enum {
	PORT_HTTP = 80,
	PORT_HTTPS = 443,
	HELD_MAX = 256 * 1024, /* of each direction, beyond the largest head */
	HELD_HIGH = 64 * 1024, /* from here on nothing more is read for the server */
};

/* A name in the extension of ECH, as far as it is not our own TLS that it is said to. */
enum flow_hidden {
	HIDDEN_NONE, /* there is no such extension */
	HIDDEN_MAYBE, /* it is not known yet whether the server could read it */
	HIDDEN_DUMMY, /* it can't */
};

enum flow_verdict { VERDICT_NONE, VERDICT_ALLOWED, VERDICT_DENIED };

struct side {
	int fd; /* -1: none, or none yet */
	uv_poll_t *poll;
	int events; /* that are watched */
};

struct flow {
	struct flow *next, **at;
	struct sandbox *of;
	uint64_t id;
	enum flow_state state;
	enum flow_via via;
	enum flow_speaks speaks; /* unknown: the first bytes are not checked */
	uint64_t start_ms, phase_ms, last_ms;

	char host[NET_HOST_MAX]; /* as it is granted; of an address its text */
	uint16_t port;
	int rule; /* -1: none yet */
	struct net_addr addr; /* of a CIDR rule's; else the one that was dialled */
	bool by_addr;

	struct side client, server;
	struct dial *dial;
	enum nw_reason failed; /* why the dial did, if a readable answer has to wait */
	struct relay up, down; /* to the server, to the client */
	enum relay_state up_state, down_state;
	struct buf in; /* of the client; is not checked */
	bool client_eof, opened, told;
	enum flow_hidden hidden;
	struct ech *ech; /* the server is being asked about it; NULL: it is not */
	uint64_t told_up, told_down; /* bytes */
	bool binds; /* its requests go through flow_bound.c */
	bool has_secrets; /* some are bound to the host */
	struct bound *bound; /* in FLOW_BOUND */
	bool told_placeholder;
	uint32_t asks; /* the question about its request; 0: none */
	enum flow_verdict verdict; /* the answer, until the request is taken */
	char why[NW_WHY_MAX]; /* it was DENIED */

	/* the explicit proxy's */
	bool greeted; /* SOCKS: the method is chosen */
	bool asked; /* the target is known */

	/* of HTTP */
	size_t scanned;
	uint64_t requests;
	struct body body; /* of the request that passes */
	bool in_body, last_request;
	bool upgrade; /* the server's answer decides what the client's bytes are */
	bool says_close; /* the answer's head is to say that nothing follows it */
	struct buf answer; /* its first bytes, in both cases */
	struct buf page; /* for the client, when the server has ended */
	bool refused; /* a later request */

	size_t drained;
};

/* ---- flow.c ---------------------------------------------------------------------------------- */

void flow_set_state(struct flow *f, enum flow_state state);
void flow_watch(struct flow *f);

/* These, and all below that give false, do so when the caller must not touch the flow any more: it
 * is gone, or all is done that was to be. */
bool flow_dial(struct flow *f);

/* The first bytes are checked: goes on as soon as the host is connected. */
bool flow_passed(struct flow *f);

/* Passes what can pass now. */
bool flow_relay_up(struct flow *f);
bool flow_relay_down(struct flow *f);
bool flow_end_up(struct flow *f); /* the server gets nothing more */
void flow_close_server(struct flow *f);

/* Frees the flow. */
void flow_end(struct flow *f, enum nw_reason reason, bool reset);

struct nw_flow flow_event(const struct flow *f, enum nw_flow_what what, enum nw_reason reason);

static inline bool flow_is_checked(const struct flow *f)
{
	uint32_t kind = f->of->rules[f->rule].kind;

	return kind == NET_RULE_NAME || kind == NET_RULE_SUFFIX;
}

/* Some HTTP rule belongs to its grant, so that only HTTP may pass. */
bool flow_has_http_rules(const struct flow *f);

/* ---- the others ------------------------------------------------------------------------------ */

bool flow_ask(struct flow *f);
bool flow_look(struct flow *f);
bool flow_look_again(struct flow *f); /* at the second ClientHello */
bool flow_look_server(struct flow *f); /* at the server's first bytes */
bool flow_http(struct flow *f); /* at what stands in `in` */
bool flow_http_answer(struct flow *f); /* at the head of a server's answer */

/* Whether the request is for the host, and none that its rules deny. WAITS: a person is asked about
 * it. GONE: as above. */
enum flow_may { FLOW_MAY, FLOW_WAITS, FLOW_GONE };
enum flow_may flow_may_ask(struct flow *f, const struct request *r);

/* Tells the hub where the text has a placeholder of the sandbox's, once. */
void flow_note_placeholder(struct flow *f, struct str text);

/* Decides whether it goes through flow_bound.c, now that it is known to be HTTP, or TLS. */
bool flow_binds(struct flow *f, bool tls);
bool flow_bound_begin(struct flow *f);
bool flow_tokens_wait(const struct flow *f); /* its request is to come later */
bool flow_tokens_go_on(struct flow *f); /* it may be that by now */
void flow_bound_answered(struct flow *f); /* the request that has waited is taken again */
bool flow_bound_dialled(struct flow *f); /* for that */
bool flow_bound_run(struct flow *f); /* something may have become possible */
bool flow_bound_is_ready(const struct flow *f); /* both ends trust each other */
bool flow_bound_wants_client(const struct flow *f);
bool flow_bound_wants_server(const struct flow *f);
bool flow_bound_has_more(const struct flow *f); /* than can be waited for */
int flow_bound_say(struct flow *f, struct str page); /* -1: an answer has begun */
void flow_bound_free(struct flow *f);

/* Denies, or says that it failed, in the protocol that is spoken. detail: borrowed text for people;
 * NULL: none. Always false. */
bool flow_deny(struct flow *f, enum nw_reason reason, const char *detail);
/* The same where the hub has been told. */
bool flow_refuse(struct flow *f, enum nw_reason reason, const char *detail);
bool flow_linger(struct flow *f); /* the client is readable or writable */
