#pragma once
/*
 * Network grants of sandboxes, from the hub's side. A sandbox has a network of its own with nothing
 * but loopback. What it is granted are sockets that listen there: the warden makes them, and the
 * egress proxy (net/egress), a process without privileges, serves them. Exact names get an address
 * of 127.1.0.0/16 here, names of wildcards one of 127.2.0.0/16 from the proxy. Names resolve by the
 * stub resolver at 127.0.0.1:53; 127.0.0.1:3128 speaks HTTP CONNECT and SOCKS5.
 *
 * The proxy starts with the first grant. If it dies, another one is started and told everything
 * anew; meanwhile connections are refused. All functions must be called on the loop's thread.
 */
#include "base/secret.h"
#include "box/host/box.h"
#include "net/wire/grant.h"
#include "net/wire/wire.h"

struct nets; /* all of a hub */
struct net; /* of one sandbox */

/* What of a host's network the proxy can't know by itself (struct nw_hello). */
struct nets_way {
	char proxy[NET_HOST_MAX]; /* "": none */
	uint16_t proxy_port;
	struct secret *auth; /* for it: "user:password"; NULL: none */
	struct nw_split split[NW_SPLIT_MAX];
	struct net_rule private[NW_NAMES_MAX], direct[NW_NAMES_MAX];
	size_t n_split, n_private, n_direct;
	struct str ca; /* PEM */
};

struct nets_options {
	const struct nets_way *way; /* borrowed until nets_close(); NULL: nothing of it */
	const struct net_rule *services; /* of the host, that sandboxes may be granted by name */
	size_t n_services;
	struct nw_resolver resolvers[NW_RESOLVERS_MAX];
	size_t n_resolvers; /* 0: the host's */
	/* of: the owner of the sandbox's net. f is borrowed, and its texts end. NULL: nobody. */
	void (*on_flow)(void *owner, void *of, const struct nw_flow *f);
	/* A request of a sandbox waits until nets_answer(), which may be called from inside, or
	 * until on_leave: it waits no more; ended: with its sandbox. NULL: nobody can be asked. */
	void (*on_ask)(void *owner, void *of, uint64_t question, const struct nw_ask *m);
	void (*on_leave)(void *owner, uint64_t question, bool ended);
	/* A log-in that the net has got tokens, by an answer with this body; begins: it is new.
	 * ERR: they are lost. On success what is appended to `ret` is the body for the sandbox, and
	 * nets_renew() was called. NULL: there are no log-ins. */
	int (*on_tokens)(void *owner, struct str name, bool begins, struct str body,
			 struct buf *ret, struct err *e);
	void *owner;
};

/* o and box are borrowed, box until nets_close(). NULL: out of memory. */
struct nets *nets_new(uv_loop_t *loop, struct box *box, const struct nets_options *o,
		      struct err *e) MUST_USE;
/* Ends the proxy; no net may be left. on_closed follows later, from the loop. */
void nets_close(struct nets *all, void (*on_closed)(void *arg), void *arg);

/* why: to the program, where it is not allowed. Idempotent. */
void nets_answer(struct nets *all, uint64_t question, bool allow, const char *why);

/* Nothing is granted yet. sb: a reference is taken. */
struct net *net_new(struct nets *all, struct sandbox *sb, void *of, struct err *e) MUST_USE;
/* What programs ask for is told here, not to nets_options.on_flow, also where nothing is granted:
 * then their resolver answers that there is no such name. Before the first grant. f as there. */
void net_watch(struct net *n, void (*tell)(void *arg, const struct nw_flow *f), void *arg);
/* Takes all back. A callback that is awaited comes with ERR_SANDBOX_NOT_FOUND. NULL-safe. */
void net_free(struct net *n);

/* Replaces what is granted; the grant is copied. Connections that stay allowed go on. On success
 * all of it can be reached; on failure what was granted before is granted again. ERR_CONFLICT: a
 * program of the sandbox has a port, or another change is under way. on_done comes once, never from
 * inside this call. */
typedef void (*net_cb)(void *arg, const struct err *err);
void net_grant_start(struct net *n, const struct net_grant *g, net_cb on_done, void *arg);

/* What stands for a secret inside, and the value that replaces it in requests to its hosts. */
struct net_secret {
	struct str name, placeholder, value;
	struct str trust; /* certificates (PEM) that its hosts are trusted by; empty: the host's */
	const struct net_rule *hosts; /* NAME and SUFFIX, with ports */
	size_t n_hosts;
	uint32_t uses; /* of enum nw_secret_use */
};

/* All of a sandbox, and the private key and certificate (PEM) of the authority it trusts; both
 * empty: none. */
struct net_secrets {
	struct str ca_key, ca;
	const struct net_secret *p;
	size_t n; /* at most NW_SECRETS_MAX; 0: it has none (any more) */
	const struct nw_exchange *exchanges; /* where log-ins get tokens */
	size_t n_exchanges;
};

/* Replaces the secrets. They are copied into locked memory, and handed to the proxy with what is
 * granted: at once if something is. Connections to hosts of secrets from before end. */
int net_bind(struct net *n, const struct net_secrets *s, struct err *e) MUST_USE;

/* A log-in has these tokens now: all nets that have it get them, and connections go on. access: its
 * value, for placeholders that stand in variables. */
void nets_renew(struct nets *all, struct str name, const struct net_secret *tokens, size_t n,
		struct str access);

/* The certificates that are trusted beside the host's; STR_NONE: none. */
struct str nets_ca(const struct nets *all);

/* A grant as net_grant_print() has written it. Names of services mean those of the hub. ret: as of
 * net_grant_init(), and empty. */
int net_grant_parse(const struct nets *all, struct str text, struct net_grant *ret,
		    struct err *e) MUST_USE;
