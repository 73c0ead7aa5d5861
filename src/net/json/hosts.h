#pragma once
/*
 * Hosts that a sandbox may reach, as JSON documents list them: those of requests, of holt.json and
 * of images. No I/O.
 */
#include "json/field/field.h"
#include "net/wire/http.h"
#include "net/wire/rule.h"

enum { NETWORK_HOSTS_MAX = 64 };

enum network_mode { NETWORK_NONE, NETWORK_BRIDGE, NETWORK_MODES };
extern const char *const network_mode_names[NETWORK_MODES];

/* One of the HTTP rules of a host; method absent: any, path absent: any. */
struct network_http {
	struct str method, path;
	enum net_http_then then;
};

/* The same of a request and of a view. port 0, in a request: 80 and 443. */
struct network_host {
	struct str host;
	uint32_t port;
	bool has_http;
	struct {
		const struct network_http *p;
		size_t n;
	} http;
};
struct network_hosts {
	const struct network_host *p;
	size_t n;
};

#define NETWORK_HOST_ROWS                                                                          \
	FIELD(struct network_host, host, .flags = FIELD_REQUIRED, .min = 1,                        \
	      .doc = "A name, or *.NAME."),                                                        \
		FIELD(struct network_host, port, .min = 1, .max = 65535,                           \
		      .doc = "80 and 443 if absent.")
extern const struct field_table network_host_table;

#define NETWORK_MODE_ROW(S)                                                                        \
	FIELD_ENUM(S, mode, network_mode_names, .has = FIELD_HAS(S, has_mode),                     \
		   .doc = "none: nothing. bridge: what allow lists.")
#define NETWORK_ALLOW_ROW(S)                                                                       \
	FIELD_OBJECTS(S, allow, network_host_table, .max = NETWORK_HOSTS_MAX,                      \
		      .doc = "All that may be reached.")

/* A document's wishes for the sandboxes that it describes. */
struct network_wish {
	bool has_mode;
	enum network_mode mode;
	struct network_hosts allow;
};
extern const struct field_table network_wish_table;
/* Checks it, and brings its hosts into their one form. Errors name the member. */
int network_wish_normalize(struct network_wish *w, struct arena *a, struct err *e) MUST_USE;

/* A list of hosts in their one form: each with a port, and with the rule's own text, so that equal
 * grants have one digest. Texts are copied to the arena. */
struct network_list {
	struct network_host *p;
	size_t n;
	struct arena *arena;
};
int network_list_init(struct network_list *l, struct arena *a, struct err *e) MUST_USE;
/* Errors name the member. */
int network_list_add(struct network_list *l, const struct network_hosts *of,
		     struct err *e) MUST_USE;
/* The same of "HOST[:PORT] RULE, ...". */
int network_list_add_texts(struct network_list *l, const char *member, const struct field_strs *of,
			   struct err *e) MUST_USE;
/* ERR_INVALID: mode is none, and n hosts are listed. */
int network_mode_check(bool has_mode, enum network_mode mode, size_t n, struct err *e) MUST_USE;

/* HOST[:PORT], also of a range or a service. */
int network_host_rule(struct str text, struct net_rule *ret, struct err *e) MUST_USE;
/* The HTTP rules of a host. */
int network_host_http(const struct network_host *h, struct net_http_rule ret[NET_HTTP_EACH],
		      struct err *e) MUST_USE;
/* "HOST[:PORT] RULE, ...", in the arena. */
char *network_host_text(const struct network_host *h, struct arena *a, struct err *e) MUST_USE;
