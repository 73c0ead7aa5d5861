/* Why a module can't be used, in words that lead to what helps. */
#include <stdio.h>
#include <strings.h>

#include "base/log.h"
#include "hub/core/hub.h"
#include "modules/code/clean.h"
#include "modules/internal.h"

enum { SAID_MAX = 8 << 10, SAID_CHARS = 120 };

/* ---- what it asked for ----------------------------------------------------------------------- */

/* "api.example.com:443" */
static void denied_text(const struct upstream_denied *d, char *ret, size_t size)
{
	char port[8] = "";

	if (d->port)
		snprintf(port, sizeof(port), ":%u", d->port);
	snprintf(ret, size, "%s%s", d->host, port);
}

void upstream_denied_text(const struct upstream *u, const struct upstream_denied *d,
			  char ret[UPSTREAM_DENIED_TEXT])
{
	char what[NET_HOST_MAX + 8];

	denied_text(d, what, sizeof(what));
	snprintf(ret, UPSTREAM_DENIED_TEXT,
		 "it asked for %s, which is not granted: holt mcp allow %s %s", what, u->name,
		 what);
}

void why_denied(struct upstream *u, const char *host, uint16_t port)
{
	struct upstream_denied d = { .port = port };
	char text[UPSTREAM_DENIED_TEXT], line[UPSTREAM_DENIED_TEXT + 16];
	size_t kept = u->n_denied < UPSTREAM_DENIED ? u->n_denied : UPSTREAM_DENIED;

	snprintf(d.host, sizeof(d.host), "%s", host);
	for (size_t i = 0; i < kept; i++) {
		if (strcmp(u->denied[i].host, d.host) == 0 && (u->denied[i].port == port || !port))
			return;
	}
	if (u->n_denied++ > UPSTREAM_DENIED)
		return;
	if (kept < UPSTREAM_DENIED) {
		u->denied[kept] = d;
		upstream_denied_text(u, &d, text);
	} else {
		snprintf(text, sizeof(text), "it asked for more that is not granted");
	}
	snprintf(line, sizeof(line), "holt: %s\n", text);
	upstream_heard(u, str_of(line));
	log_info("module %s: %s", u->name, text);
	hub_sandboxes_tell_denied(hub_sandboxes(u->all->place.hub), str_of(u->name), str_of(text));
	upstreams_changed(u->all);
}

/* ---- what it said ---------------------------------------------------------------------------- */

/* A line that tells why; those of a stack, which are indented, tell where. */
static bool said_tells(struct str line)
{
	static const char *const words[] = {
		"error",   "cannot",  "can't",	"could not", "not found", "no such",   "missing",
		"require", "fatal",   "denied", "refused",   "invalid",	  "failed",    "unable",
		"usage",   "unknown", "must ",	"not set",   "enotfound", "eai_again",
	};
	char text[256];

	if (!line.n || *line.p == ' ' || *line.p == '\t' || str_starts(line, "holt: "))
		return false;
	snprintf(text, sizeof(text), "%.*s", STR_CUT(line, sizeof(text) - 1));
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcasestr(text, words[i]))
			return true;
	}
	return false;
}

/* Of its standard error since the connection began: the first and the last line that tell why,
 * else the last. */
static void said_find(const struct upstream *u, struct str *ret_first, struct str *ret_last)
{
	struct str all = upstream_log(u), any = STR_NONE;
	size_t n = u->heard < all.n ? u->heard : all.n;

	n = n < SAID_MAX ? n : SAID_MAX;
	all = (struct str){ all.p + all.n - n, n };
	*ret_first = *ret_last = STR_NONE;
	while (all.n) {
		const char *end = memchr(all.p, '\n', all.n);
		struct str line = { all.p, end ? (size_t)(end - all.p) : all.n };

		all.p += line.n + (end != NULL);
		all.n -= line.n + (end != NULL);
		if (line.n && !str_starts(line, "holt: "))
			any = line;
		if (!said_tells(line))
			continue;
		*ret_last = line;
		if (!ret_first->n)
			*ret_first = line;
	}
	if (!ret_first->n)
		*ret_first = *ret_last = any;
}

static int said_add(struct buf *to, struct str line, struct err *e)
{
	return clean_text(to, line, CLEAN_LINE, SAID_CHARS, e);
}

/* ---- why it was lost ------------------------------------------------------------------------- */

/* Codes whose remedy is about what a client asks for, its sandbox, or the way to the hub. */
static enum err_code why_code(enum err_code code)
{
	static const enum err_code others[] = {
		ERR_INVALID,
		ERR_DENIED,
		ERR_CONFLICT,
		ERR_TOO_LARGE,
		ERR_TIMEOUT,
		ERR_TRANSPORT,
		ERR_IO,
		ERR_UNSUPPORTED,
		ERR_PROGRAM,
		ERR_PATH_DENIED,
		ERR_PATH_NOT_FOUND,
		ERR_NOT_A_FILE,
		ERR_NOT_JSON,
		ERR_MESSAGE,
		ERR_COMMAND_NOT_FOUND,
		ERR_COMMAND_NOT_RUN,
		ERR_NO_METHOD,
		ERR_DISK_FULL,
		ERR_TEMPLATE_NOT_FOUND,
		ERR_SANDBOX_NOT_FOUND,
		ERR_PIDS_FULL,
		ERR_MEMORY_FULL,
		ERR_GUEST,
		ERR_SECRET_NOT_FOUND,
	};

	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		if (code == others[i])
			return ERR_MODULE_START;
	}
	return code;
}

void why_lost(const struct upstream *u, const struct err *e, struct err *ret)
{
	autobuf struct buf text = BUF_INIT(16 << 10);
	struct str first, last;
	char line[UPSTREAM_DENIED_TEXT];
	struct err none;
	int rc = buf_addf(&text, &none, "%s%s", e->msg,
			  e->code == ERR_SECRET_NOT_FOUND ? " (holt secret set stores it)" : "");

	*ret = *e;
	ret->code = why_code(e->code);
	if (ret->code != ERR_MODULE_START)
		return;
	if (u->n_denied) {
		upstream_denied_text(u, &u->denied[0], line);
		rc = rc < 0 ? rc : buf_addf(&text, &none, "; %s", line);
	}
	said_find(u, &first, &last);
	if (rc == 0 && first.n) {
		rc = buf_addf(&text, &none, "; it said: ");
		rc = rc < 0 ? rc : said_add(&text, first, &none);
		if (rc == 0 && last.p != first.p)
			rc = buf_addf(&text, &none, " … ") < 0 ? -1 : said_add(&text, last, &none);
	}
	if (rc == 0)
		err_set(ret, ret->code, "%.*s", STR_ARG(buf_str(&text)));
}
