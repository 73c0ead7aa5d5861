#pragma once
/*
 * What a sandbox may reach: `network` of sandbox.create, and network.get and network.set. A grant
 * is a list of hosts with ports, and there is no list of what is forbidden. Who is not the operator
 * may grant no more than the hub was started with (ops_options.network), and nobody more than the
 * operator's file says of him. A host may be the name of a preset of that file.
 */
#include "call/call.h"
#include "net/json/hosts.h"

/* Nothing but grants is allowed, so allow is refused. */
enum egress { EGRESS_DENY, EGRESS_ALLOW, EGRESSES };
extern const char *const egress_names[EGRESSES];

/* Normalized, all is in allow. */
struct network_request {
	bool has_mode, block;
	enum network_mode mode;
	enum egress egress, inbound;
	struct network_hosts allow;
	struct field_strs allow_domains, allow_cidrs, inbound_cidrs;
};
extern const struct field_table network_request_table;
extern const struct field_table network_grant_table; /* allow alone */
extern const struct field_table network_contract_table; /* mode and allow */

struct config_file;
/* Errors name the member. */
int network_normalize(struct network_request *q, struct arena *a, struct err *e) MUST_USE;

/* Turns a normalized request into the hub's. ERR_DENIED: the caller may not grant that. */
int network_text(struct call *c, const struct network_request *q, struct str *ret,
		 struct err *e) MUST_USE;

/* Whether who asks may grant that, for a program without a hub. ERR_DENIED. */
int network_check(struct call *c, const struct net_grant *g, struct err *e) MUST_USE;

/* Appends what the file's entries of "principals" list for it; f: may be NULL. */
int network_listed(const struct config_file *f, struct str who, struct net_grant *to,
		   struct err *e) MUST_USE;
/* ERR_DENIED where g is more than `most`; who_says: begins the message, "the operator lets you". */
int network_check_within(const struct net_grant *g, const struct net_grant *most,
			 const char *who_says, struct err *e) MUST_USE;

/* The rules that a text means: itself, with the HTTP rules behind it ("HOST[:PORT] RULE, ..."), or
 * those of the preset of that name; f: NULL for no presets. A name without a port is two rules. */
int network_rules(const struct config_file *f, struct str text, struct net_grant *to,
		  struct err *e) MUST_USE;
/* Whether all presets, and lists of principals and MCP servers, in a file can be read. */
int network_check_file(const struct config_file *f, struct err *e) MUST_USE;

/* The hosts that a secret of the operator's file is bound to. */
struct config_secret;
int network_secret_hosts(const struct config_secret *s, struct net_rule ret[NW_SECRET_HOSTS_MAX],
			 size_t *ret_n, struct err *e) MUST_USE;
/* Where the log-in gets tokens. */
int network_login_urls(const struct config_secret *s, struct nw_exchange ret[NW_EXCHANGES_MAX],
		       size_t *ret_n, struct err *e) MUST_USE;
/* Whether a rule of the text, as of network_text(), lets one of these hosts be reached. */
bool network_reaches(struct str text, const struct net_rule *hosts, size_t n);

struct network_view {
	bool block;
	enum egress egress;
	enum network_mode mode;
	struct network_hosts allow;
};
extern const struct field_table network_view_table;
#define NETWORK_VIEW_NONE                                                                          \
	((struct network_view){ .block = true, .egress = EGRESS_DENY, .mode = NETWORK_NONE })

/* Its texts are borrowed from `text`, its list is in the call's arena. */
int network_view(struct call *c, struct str text, struct network_view *ret, struct err *e) MUST_USE;

/* The result of both operations. */
struct network_state {
	struct str sandbox;
	enum network_mode mode;
	struct network_hosts allow;
	uint64_t revision, opened, denied, failed, bytes_sent, bytes_received;
};
