#pragma once
/* The options about networks of sandboxes, and what they mean to a hub. */
#include <unistd.h>

#include "cli/common/home.h"
#include "cli/common/option.h"
#include "config/config.h"
#include "hub/net/net.h"

/* Opens the operator's file for a verb. */
static inline struct config *config_find(const char *said, struct err *e)
{
	char path[PATH_MAX];
	struct config *c;
	bool must;

	if (home_config(said, path, &must, e) < 0)
		return NULL;
	c = config_open(path, must, e);
	if (!c && access(path, F_OK) < 0)
		err_wrap(e, "%.200s", path); /* the cause has its name alone */
	return c;
}

/* Options of verbs that have a hub. */
struct network_options {
	struct option_list allow, services, resolvers;
};

/* The rows of a struct S with a member m, a struct network_options. */
#define NETWORK_ROWS(S, m)                                                                         \
	OPTION(S, m.allow, OPTION_LIST, "allow", .arg = "HOST[:PORT]",                             \
	       .doc = "Hosts that clients may let sandboxes reach: HOST, *.DOMAIN, a range of "    \
		      "addresses, or a preset. HTTP rules may follow. May be repeated."),          \
		NETWORK_ROWS_OF_HOST(S, m)
#define NETWORK_ROWS_OF_HOST(S, m)                                                                 \
	OPTION(S, m.services, OPTION_LIST, "service", .arg = "NAME.holt:PORT=TARGET",              \
	       .doc = "A service of this host that sandboxes may be granted. May be "              \
		      "repeated."),                                                                \
		OPTION(S, m.resolvers, OPTION_LIST, "resolver", .arg = "ADDR[:PORT]",              \
		       .doc = "DNS server for sandboxes' networks; by default the host's. May be " \
			      "repeated.")

/* Rows of verbs that make a sandbox themselves, which --allow grants hosts. */
#define OWN_NETWORK_ROWS(S, m)                                                                     \
	OPTION(S, m.allow, OPTION_LIST, "allow", .arg = "HOST[:PORT]",                             \
	       .doc = "Allow it to reach this host, or *.DOMAIN. HTTP rules may follow. May be "   \
		      "repeated."),                                                                \
		NETWORK_ROWS_OF_HOST(S, m)

/* Borrowed by nets_options and ops_options. Zeros hold nothing. */
struct grants {
	struct net_grant allow;
	struct net_rule *services; /* owned */
	struct nw_resolver resolvers[NW_RESOLVERS_MAX];
	size_t n_services, n_resolvers;
	struct nets_way *way; /* owned */
};
/* f: whose presets --allow may name; NULL: none. Without a port, a rule of --allow is two: 80 and
 * 443. On -1 there may be some to free. */
int grants_read(const struct network_options *o, const struct config_file *f, struct grants *ret,
		struct err *e) MUST_USE;
void grants_fini(struct grants *g);

/* way.c: how names are reached, by the file (may be NULL) and the environment. Owned. */
struct nets_way *way_read(const struct config_file *f, struct err *e) MUST_USE;
void way_free(struct nets_way *w); /* NULL-safe */
AUTO_DEFINE(way_free, struct nets_way)

/* The same for such a verb; config: what --config said, or NULL. ERR_UNSUPPORTED: it needs a
 * hub. */
int grants_read_own(const struct network_options *o, const char *config, struct grants *ret,
		    struct err *e) MUST_USE;
struct grants_to {
	uv_loop_t *loop;
	struct box *box;
	struct sandbox *sandbox;
};
/* Grants it to the sandbox of such a verb; on_granted follows. *nets is made unless it is there,
 * and is closed by the caller after *net is freed, also on -1. */
int grants_give(const struct grants *g, const struct grants_to *to, struct nets **nets,
		struct net **net, net_cb on_granted, void *arg, struct err *e) MUST_USE;
