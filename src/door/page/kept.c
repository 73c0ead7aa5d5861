/*
 * Log-ins over TLS on the disk, so that a browser stays logged in when the hub is started anew or
 * has died. The file has hashes of the secrets. Of those whose principal is not there by its name,
 * such as a key's, nothing is kept; nor of those over plain HTTP, whose secrets another user of the
 * machine gets who takes the port in between: an open page asks on, whoever answers. What can't be
 * written is lost with the hub, and nothing else is. Under another token of the hub all are over,
 * since whoever had the old one could have made them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "agents/store/document.h"
#include "base/clock.h"
#include "base/log.h"
#include "door/page/internal.h"
#include "json/field/field.h"

enum { FILE_MAX = 64 << 10 };
#define FILE_NAME "logins.json"

struct kept {
	struct str name, cookie, key;
	bool tls;
	int64_t began_ms, used_ms;
};
#define K struct kept
static const struct field kept_fields[] = {
	FIELD(K, name, .flags = FIELD_REQUIRED, .doc = "Name of the principal."),
	FIELD(K, cookie, .flags = FIELD_REQUIRED, .min = SHA256_HEX - 1, .max = SHA256_HEX - 1,
	      .doc = "SHA-256 of the cookie."),
	FIELD(K, key, .flags = FIELD_REQUIRED, .min = SHA256_HEX - 1, .max = SHA256_HEX - 1,
	      .doc = "SHA-256 of the page's key."),
	FIELD(K, tls, .flags = FIELD_REQUIRED, .doc = "It began over TLS; others are not kept."),
	FIELD(K, began_ms, .flags = FIELD_REQUIRED,
	      .doc = "Start of the log-in, in ms since 1970."),
	FIELD(K, used_ms, .flags = FIELD_REQUIRED, .doc = "Last use, in ms since 1970."),
};
#undef K
static const struct field_table kept_table = FIELD_TABLE(struct kept, kept_fields);

struct kept_file {
	struct str token;
	struct {
		const struct kept *p;
		size_t n;
	} logins;
};
static const struct field file_fields[] = {
	FIELD(struct kept_file, token, .flags = FIELD_REQUIRED, .min = SHA256_HEX - 1,
	      .max = SHA256_HEX - 1, .doc = "SHA-256 of the hub's token."),
	FIELD_OBJECTS(struct kept_file, logins, kept_table, .flags = FIELD_REQUIRED,
		      .max = LOGINS_MAX, .doc = "Log-ins, oldest first."),
};
static const struct field_table file_table = FIELD_TABLE(struct kept_file, file_fields);

static int kept_take(struct page *p, const struct kept *k, struct err *e)
{
	const struct principal *by = k->tls ? p->o.named(p->o.owner, k->name) : NULL;
	struct login *l = by ? login_new(p, by, e) : NULL;

	if (!by)
		return 0;
	if (!l)
		return -1;
	memcpy(l->cookie, k->cookie.p, k->cookie.n);
	memcpy(l->key, k->key.p, k->key.n);
	l->kept = true;
	l->began_ms = k->began_ms;
	l->used_ms = k->used_ms;
	return 0;
}

void kept_read(struct page *p)
{
	AUTO(arena_free) struct arena *a = arena_new(FILE_MAX);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct kept_file file = { .token = STR_NONE };
	struct err e = ERR_INIT;

	if (p->o.folder < 0 || !a)
		return;
	doc = document_read(p->o.folder, FILE_NAME, &e);
	if (!doc || field_decode(&file_table, json_root(doc), a, &file, &e) < 0) {
		file.logins.n = 0;
	} else if (!str_is(file.token, p->o.token)) {
		log_info("the token is another one: browsers must log in again");
		file.logins.n = 0;
	}
	for (size_t i = 0; i < file.logins.n; i++) {
		if (kept_take(p, &file.logins.p[i], &e) < 0)
			break;
	}
	if (e.code && e.code != ERR_PATH_NOT_FOUND)
		log_warn("log-ins of browsers are lost: %s", e.msg);
}

int kept_write(struct page *p, struct err *e)
{
	struct kept rows[LOGINS_MAX];
	size_t n = LOGINS_MAX;
	autofree char *text = NULL;

	p->saved_ms = clock_unix_ms();
	if (p->o.folder < 0)
		return 0;
	for (const struct login *l = p->logins; l && n > 0; l = l->next) {
		if (!l->who.ended && l->kept && p->o.named(p->o.owner, str_of(l->name)) == l->by)
			rows[--n] = (struct kept){ str_of(l->name), str_of(l->cookie),
						   str_of(l->key),  true,
						   l->began_ms,	    l->used_ms };
	}
	text = field_encode_text(&file_table,
				 &(struct kept_file){ .token = str_of(p->o.token),
						      .logins = { rows + n, LOGINS_MAX - n } },
				 FILE_MAX, e);
	if (text && document_write(p->o.folder, FILE_NAME, str_of(text), e) == 0)
		return 0;
	log_warn("log-ins of browsers are not kept: %s", e->msg);
	return -1;
}
