#pragma once
/*
 * Links to servers in sandboxes, for people: a name of its own below a domain, and a token in the
 * link. The name makes a page an origin of its own, apart from the hub and from every other
 * sandbox; the token says which port of which sandbox, and until when. It is sealed, so nothing
 * about it is kept, and who has it can do nothing else with it. The name belongs to one generation
 * of a sandbox: what a browser keeps of it is shown to no later one. With the hub both end.
 */
#include "hub/sandbox/life.h"

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

/* "*.DOMAIN", as http_options.hosts has it; ERR_INVALID for what is no name of a domain. */
int preview_names(const char *domain, char *ret, size_t size, struct err *e) MUST_USE;

/* A link to a port of one that runs, for so many seconds. */
int preview_make(const struct previews *p, struct life *l, uint16_t port, uint64_t ttl_s,
		 char ret_url[PREVIEW_URL_MAX], int64_t *ret_expires_s, struct err *e) MUST_USE;

struct preview_right {
	char id[LIFE_ID_MAX + 1];
	uint16_t port;
	uint32_t generation;
	int64_t expires_s; /* Unix time */
};
/* What a token gives that came under this name (a request's Host). ERR_UNAUTHORIZED where it is
 * none, is over, or is another name's. Whether there is such a sandbox is not looked at. */
int preview_open(const struct previews *p, struct str token, struct str host,
		 struct preview_right *ret, struct err *e) MUST_USE;
