/* Reports failures: the exit status, and a message for people or as JSON. */
#include <stdio.h>

#include "cli/peer/internal.h"
#include "cli/common/safe.h"
#include "json/document/utf8.h"
#include "json/document/write.h"

enum { JSON_MAX = 256 << 20, MESSAGE_MAX = 4096 };

static const struct end {
	int exit;
	const char *name, *remedy;
} ends[] = {
#define PEER_END(name_, exit_, word_, remedy_) [PEER_##name_] = { exit_, word_, remedy_ },
#include "cli/peer/end.h"
#undef PEER_END
};

/* The kind of an error, before and after the server could be asked. */
static const struct meaning {
	enum err_code code;
	enum peer_end early, late;
	const char *remedy; /* NULL: that of the end */
} meanings[] = {
	{ ERR_LOGIN, PEER_AUTHORIZATION, PEER_AUTHORIZATION },
	{ ERR_DENIED, PEER_AUTHORIZATION, PEER_AUTHORIZATION,
	  "Ask the server's operator to allow it, or log in as another user." },
	{ ERR_UNTRUSTED, PEER_PROTOCOL, PEER_PROTOCOL,
	  "It could leak a log-in or token, so nothing secret was sent. Tell its operator, "
	  "and give it no token until that is fixed." },
	{ ERR_NOT_PUBLIC, PEER_AUTHORIZATION, PEER_AUTHORIZATION,
	  "If the server is in a network of your own, allow it with --allow-private." },
	{ ERR_CANCELLED, PEER_AUTHORIZATION, PEER_PROTOCOL },
	{ ERR_TRANSPORT, PEER_UNREACHABLE, PEER_UNREACHABLE },
	{ ERR_COMMAND_NOT_FOUND, PEER_UNREACHABLE, PEER_UNREACHABLE },
	{ ERR_COMMAND_NOT_RUN, PEER_UNREACHABLE, PEER_UNREACHABLE },
	{ ERR_TIMEOUT, PEER_UNREACHABLE, PEER_TIMEOUT },
	{ ERR_UNSUPPORTED, PEER_PROTOCOL, PEER_PROTOCOL },
	{ ERR_TOO_LARGE, PEER_PROTOCOL, PEER_PROTOCOL },
	{ ERR_LIMIT, PEER_UNREACHABLE, PEER_PROTOCOL, "Wait, and try again." },
	{ ERR_INVALID, PEER_PROTOCOL, PEER_PROTOCOL },
};

static const struct meaning *meaning_of(enum err_code code)
{
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		if (meanings[i].code == code)
			return &meanings[i];
	}
	return NULL;
}

enum peer_end peer_meaning(const struct peer *p, const struct err *e)
{
	const struct meaning *m = meaning_of(e->code);

	return !m ? PEER_OWN : p->spoke ? m->late : m->early;
}

void peer_end(struct peer *p, enum peer_end how)
{
	peer_finish(p, ends[how].exit);
}

/* {"error":{"kind","message","code","data"}}: what --json prints on standard error. */
static void print_json_failure(enum peer_end how, struct str message, const struct json_val *fault)
{
	autobuf struct buf b = BUF_INIT(JSON_MAX);
	struct json_writer w = json_writer(&b);
	struct err e = ERR_INIT;

	json_write_object(&w);
	json_write_key(&w, "error");
	json_write_object(&w);
	json_write_key(&w, "kind");
	json_write_text(&w, ends[how].name);
	json_write_key(&w, "message");
	json_write_str(&w, message);
	if (fault) {
		json_write_key(&w, "code");
		json_write_val(&w, json_get(fault, "code"));
	}
	if (json_get(fault, "data")) {
		json_write_key(&w, "data");
		json_write_val(&w, json_get(fault, "data"));
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	if (json_write_done(&w, &e) < 0)
		return;
	safe_json_puts(stderr, buf_str(&b));
}

static void print_failure(const struct peer *p, enum peer_end how, const char *remedy,
			  struct str message, const struct json_val *fault)
{
	struct err e = ERR_INIT;

	fprintf(stderr, "holt %s: ", p->in->verb->name);
	safe_puts(stderr, message);
	if (json_get(fault, "data")) {
		fputs("  ", stderr);
		if (safe_json_lines(stderr, json_get(fault, "data"), 2, &e) == 0)
			fputc('\n', stderr);
	}
	if (how == PEER_USAGE)
		fprintf(stderr, "Try 'holt help %s'.\n", p->in->verb->name);
	else if (remedy)
		fprintf(stderr, "  %s\n", remedy);
}

static void fail_tell(struct peer *p, enum peer_end how, const char *remedy, struct str message,
		      const struct json_val *fault)
{
	if (p->o->quiet)
		return;
	peer_err(p);
	fflush(stdout);
	if (p->o->json) {
		print_json_failure(how, message, fault);
		return;
	}
	print_failure(p, how, remedy, message, fault);
	if (how == PEER_UNREACHABLE && !p->o->verbose && p->tail_n > 0) {
		fputs("  The server's program wrote:\n", stderr);
		safe_text(stderr, (struct str){ p->tail, p->tail_n }, 4);
	}
}

void peer_tell(struct peer *p, enum peer_end how, const struct err *e)
{
	const struct meaning *m = meaning_of(e->code);
	/* a failure of our own, such as an existing file, means something else */
	bool meant = m && (m->early == how || m->late == how);

	fail_tell(p, how, meant && m->remedy ? m->remedy : ends[how].remedy, str_of(e->msg), NULL);
}

void peer_fail(struct peer *p, enum peer_end how, const struct err *e)
{
	if (p->ending)
		return;
	peer_tell(p, how, e);
	peer_end(p, how);
}

/* The error's data names a missing capability. */
static const char *lack_of(const struct json_val *fault)
{
	const struct json_val *needs = json_get(json_get(fault, "data"), "requiredCapabilities");

	if (json_get(needs, "sampling"))
		return "; it needs sampling, which this client does not offer";
	if (json_get(needs, "roots"))
		return "; it asks for folders: name them with --root";
	return "";
}

static void fail_by(struct peer *p, const struct json_val *fault)
{
	autobuf struct buf b = BUF_INIT(2 * MESSAGE_MAX);
	struct str says = utf8_cut(json_str(json_get(fault, "message")), MESSAGE_MAX);
	struct err e = ERR_INIT;
	int64_t code = 0;

	json_int64(json_get(fault, "code"), &code);
	if (buf_addf(&b, &e, "the server refused: %.*s (%lld)%s", STR_ARG(says), (long long)code,
		     lack_of(fault)) < 0) {
		peer_fail(p, PEER_OWN, &e);
		return;
	}
	fail_tell(p, PEER_PROTOCOL, NULL, buf_str(&b), fault);
	peer_end(p, PEER_PROTOCOL);
}

void peer_fail_answer(struct peer *p, const struct mcp_answer *a)
{
	if (a->fault)
		fail_by(p, a->fault);
	else
		peer_fail(p, peer_meaning(p, a->e), a->e);
}
