#pragma once
/*
 * Links for people to servers in sandboxes: a host name below a domain, and a token in the link.
 * The name makes a page an origin of its own, apart from the hub and every other sandbox. The token
 * names the port, the sandbox and the expiry. It is sealed, so the hub stores nothing about it, and
 * it gives no other access. A name belongs to one generation of a sandbox: what a browser has
 * stored for it is never shown to a later one. Both end with the hub.
 */
#include "hub/sandbox/sandbox.h"

struct previews;

enum {
	PREVIEW_URL_MAX = 1024,
	PREVIEW_TTL_DEFAULT = 3600, /* seconds */
	PREVIEW_TTL_MAX = 7 * 86400,
};

struct preview_site {
	const char *domain; /* below which the names are */
	int port;
	bool tls;
};

struct previews *previews_new(const struct preview_site *site, struct err *e) MUST_USE;
void previews_free(struct previews *p); /* NULL-safe */

/* "*.DOMAIN", for http_options.hosts. ERR_INVALID if it is no domain name. */
int preview_names(const char *domain, char *ret, size_t size, struct err *e) MUST_USE;

/* A link to a port of a running sandbox, valid for that many seconds. owner: who made it, at most
 * OWNER_MAX bytes. */
int preview_make(const struct previews *p, struct hub_sandbox *l, uint16_t port, uint64_t ttl_s,
		 struct str owner, char ret_url[PREVIEW_URL_MAX], int64_t *ret_expires_s,
		 struct err *e) MUST_USE;

struct preview_right {
	char id[SANDBOX_ID_MAX + 1];
	char owner[OWNER_MAX + 1];
	uint16_t port;
	uint32_t generation;
	int64_t expires_s; /* Unix time */
};
/* Opens a token that was sent to this name (a request's Host). ERR_LINK if it is invalid,
 * expired, or for another name. Whether the sandbox and the owner exist is not checked. */
int preview_open(const struct previews *p, struct str token, struct str host,
		 struct preview_right *ret, struct err *e) MUST_USE;
