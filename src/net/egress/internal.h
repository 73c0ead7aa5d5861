#pragma once
/* Shared by the parts of the egress proxy. main.c has the theory of operation. */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/mem.h"
#include "net/egress/dns.h"
#include "net/egress/relay.h"
#include "net/egress/request.h"
#include "net/egress/resolve.h"
#include "net/wire/wire.h"

struct flow;
struct link;
struct listener;
struct pending;
struct stub;
struct trust;
struct vault;
struct ways;
struct wild;

/* Tokens that come back with time: `rate` a second, at most `most`. */
struct bucket {
	uint64_t rate, most;
	uint64_t thousandths, ms;
};
void bucket_init(struct bucket *b, uint64_t rate, uint64_t most);
uint64_t bucket_has(struct bucket *b, uint64_t now_ms);
void bucket_take(struct bucket *b, uint64_t n); /* at most what it has; more makes it empty */

enum { SANDBOX_DENIED_NAMES = 16 };
enum { TOKENS_MOST = 6, TOKENS_COST = 10 /* seconds, until one more request may be for tokens */ };

struct sandbox {
	struct sandbox *next;
	struct egress *of;
	uint64_t key;
	char id[NW_ID_MAX];
	struct net_rule *rules;
	size_t n_rules;
	struct net_http_rule *http;
	size_t n_http;
	struct vault *vault; /* its secrets; NULL: none */
	struct listener *listeners;
	struct flow *flows;
	size_t n_flows;
	struct wild *wilds; /* names of wildcards that have addresses */
	size_t n_wilds;
	uint32_t last_wild; /* address, in its net */
	struct stub *stubs; /* connections to its resolver */
	size_t n_stubs;
	struct pending *pending; /* queries that wait for an address */
	size_t n_pending;
	struct bucket new_flows, queries, bytes, tokens;
	bool paused; /* flows wait for bytes */
	uint64_t denied[SANDBOX_DENIED_NAMES]; /* hashes of names whose denial was told */
	size_t n_denied;
	uint64_t limit_told_ms;
};

struct egress {
	uv_loop_t loop;
	struct link *link;
	struct ways *ways; /* NULL before NW_HELLO */
	struct nw_limits limits; /* complete */
	struct trust *trust; /* NULL before NW_HELLO */
	struct sandbox *sandboxes;
	struct relay_pipes pipes;
	uv_timer_t sweep; /* of times of flows; runs while there are any */
	uv_timer_t refill; /* of bytes; runs while any flow is paused */
	uint64_t n_flows;
	uint64_t last_flow;
	uint32_t last_want, last_ask;
	uint64_t lost; /* events */
	int own; /* own.h */
	int spare; /* a descriptor to give up when there is no other */
};

/* ---- main.c ---------------------------------------------------------------------------------- */

/* Something has a time now: the sweep runs as long as anything has. */
void egress_wake(struct egress *g);

/* A flow of a sandbox waits for bytes. */
void egress_pause(struct egress *g);

/* ---- sandbox.c ------------------------------------------------------------------------------- */

struct sandbox *sandbox_find(struct egress *g, uint64_t key);
int sandbox_grant(struct egress *g, const struct nw_grant *m, const struct net_rule *rules,
		  const struct net_http_rule *http, struct err *e) MUST_USE;

/* Takes the secrets, NULL for none. Flows to hosts of those from before are reset, unless it only
 * renews values. */
void sandbox_bind(struct sandbox *s, struct vault *secrets, bool renews);
void sandbox_drop(struct egress *g, uint64_t key);

/* Every FLOW event of it begins with this. */
struct nw_flow sandbox_event(const struct sandbox *s, enum nw_flow_what what, enum nw_flow_by by,
			     enum nw_reason reason);

/* "a.example:443, b.example:443 and 3 more" */
void sandbox_list_rules(const struct sandbox *s, char *ret, size_t size);

/* ---- listener.c ------------------------------------------------------------------------------ */

/* Takes the descriptors, also on failure. */
int listener_add_all(struct sandbox *s, const struct nw_socket *sockets, const int *fds, size_t n,
		     struct err *e) MUST_USE;

/* Closes those whose names and ports are no longer granted, or all. */
void listener_close_ungranted(struct sandbox *s);
void listener_close_all(struct sandbox *s);
void listener_close_at(struct sandbox *s, uint32_t ip);

/* The address that stands for a name; 0: none. */
uint32_t listener_address_of(const struct sandbox *s, const char *name);
bool listener_has(const struct sandbox *s, uint32_t ip, uint16_t port); /* 0: any port */

/* The socket of its resolver, borrowed; -1: none. */
int listener_dns(const struct sandbox *s);

/* ---- stub.c: the resolver of the sandbox ----------------------------------------------------- */

/* Answers queries: at the socket, which stays the listener's; or of a connection, which it
 * takes. */
void stub_read_udp(struct sandbox *s, int fd);
void stub_accept(struct sandbox *s, int fd);
void stub_close_all(struct sandbox *s);

/* ---- wild.c ---------------------------------------------------------------------------------- */

/* Calls on_done once, maybe within this: ip 0 if there is none to be had. */
typedef void wild_fn(void *owner, const char *name, uint32_t ip);

/* Finds or makes an address for a name that a wildcard grants. */
void wild_get(struct sandbox *s, const char *name, wild_fn *on_done, void *owner);
void wild_cancel(struct sandbox *s, void *owner);

/* An address was given out: it stays for a while. */
void wild_touch(struct sandbox *s, uint32_t ip);

/* The hub has answered. */
int wild_answered(struct sandbox *s, const struct nw_sockets *m, const struct nw_socket *sockets,
		  const int *fds, struct err *e) MUST_USE;
void wild_drop_ungranted(struct sandbox *s);
void wild_close_all(struct sandbox *s);
bool wild_sweep(struct sandbox *s, uint64_t now_ms); /* whether the hub owes an answer */

/* ---- flow.c ---------------------------------------------------------------------------------- */

/* Takes the accepted connection. name: what the listener's address stands for; NULL: it is the
 * explicit proxy's. */
void flow_new(struct sandbox *s, int fd, const char *name, uint16_t port);
void flow_sweep(struct flow *f, uint64_t now_ms);
void flow_refill(struct flow *f);
struct flow *flow_next(const struct flow *f);
const char *flow_name(const struct flow *f);
bool flow_is_bound(const struct flow *f);

/* A person was asked about a request; the flow may be gone. */
void flow_answered(struct sandbox *s, const struct nw_verdict *m);

/* The hub has kept tokens, or not; the same. */
void flow_kept(struct sandbox *s, const struct nw_kept *m, struct str body);

/* The rules have changed from these, whose memory ends soon. */
void flow_check_again(struct flow *f, const struct net_rule *old);
void flow_close(struct flow *f, enum nw_reason reason);

/* ---- dial.c ---------------------------------------------------------------------------------- */

/* The target of a flow. */
struct dial_to {
	const char *host; /* "": addr */
	uint16_t port;
	int rule;
	struct net_addr addr;
};

struct dial;

/* fd -1: *reason says why; addr is the last that was tried or refused, of the family 0 where the
 * network's own proxy has resolved the name. Taken by the callback. */
typedef void dial_fn(void *owner, int fd, const struct net_addr *addr, enum nw_reason reason);

/* The callback comes once, never within this; NULL: out of memory. */
struct dial *dial_start(struct sandbox *s, const struct dial_to *to, dial_fn *on_done, void *owner);
void dial_cancel(struct dial *d); /* NULL-safe; no callback follows */
void dial_sweep(struct dial *d, uint64_t now_ms); /* a try may have taken too long */

/* Whether the rules let this address be dialled at the port. name: that was resolved to it; NULL:
 * none. */
bool dial_may(const struct sandbox *s, const struct net_addr *a, uint16_t port, const char *name);

/* ---- link.c: the hub ------------------------------------------------------------------------- */

struct link *link_new(struct egress *g, int fd, struct err *e) MUST_USE;
bool link_tell(struct egress *g, const struct nw_flow *m); /* false: it was dropped */
void link_send(struct egress *g, const void *m, size_t n); /* is not dropped */

/* ---- confine.c ------------------------------------------------------------------------------- */

int confine_start(struct err *e) MUST_USE; /* before anything is read */
int confine_end(struct err *e) MUST_USE; /* when all files are open */

/* ---- handle.c -------------------------------------------------------------------------------- */

/* Handles of the loop that are freed when it has closed them, so that their owners can go at once.
 * NULL: out of memory. */
uv_poll_t *poll_new(uv_loop_t *loop, int fd, void *data);
void poll_drop(uv_poll_t **poll); /* before the descriptor is closed; *poll may be NULL */
uv_timer_t *timer_new(uv_loop_t *loop, void *data);
void timer_drop(uv_timer_t **timer);

/* Closes a connection with a reset, so that the other end knows at once. */
void fd_reset(int fd);
