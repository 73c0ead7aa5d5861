#include "guard/audit/record.h"

#include <stdio.h>
#include <time.h>

/* The longest line has all of a call and a signature; the members' maxima keep it within
 * AUDIT_LINE_MAX (tests/unit/audit.c). */
#define R struct audit_record
static const struct field record_fields[] = {
	FIELD(R, seq, .flags = FIELD_REQUIRED, .doc = "Position in the log, from 1."),
	FIELD(R, prev, .flags = FIELD_REQUIRED, .min = 64, .max = 64,
	      .doc = "SHA-256 of the previous line."),
	FIELD(R, time, .flags = FIELD_REQUIRED, .min = 24, .max = 24,
	      .doc = "When the call ended."),
	FIELD(R, event, .max = 16, .doc = "Event of the log itself; absent for calls."),
	FIELD(R, session, .max = 24, .doc = "Session of the hub; absent for calls without a hub."),
	FIELD(R, id, .max = 40, .doc = "Audit id of the call."),
	FIELD(R, who, .max = 72, .doc = "The principal."),
	FIELD(R, action, .max = 32, .doc = "The operation."),
	FIELD(R, effect, .max = 10, .doc = "What the operation does to its target."),
	FIELD(R, target, .max = 64, .doc = "The sandbox that the call names."),
	FIELD(R, args, .max = 64, .doc = "SHA-256 of the canonical arguments."),
	FIELD(R, output, .max = 64, .doc = "SHA-256 of the answer."),
	FIELD(R, decision, .max = 8, .doc = "Decision of the policy: allow, ask or deny."),
	FIELD(R, rule, .max = 56, .doc = "Place of the rule in the configuration."),
	FIELD(R, approval, .max = 48, .doc = "Id of the approval."),
	FIELD(R, outcome, .max = 28, .doc = "\"ok\", or the name of the failure."),
	FIELD(R, ms, .has = FIELD_HAS(R, timed), .doc = "Duration in ms."),
	FIELD(R, bytes, .has = FIELD_HAS(R, timed), .doc = "Size of the answer in bytes."),
	FIELD(R, version, .max = 32, .doc = "Version of Holt."),
	FIELD(R, count, .has = FIELD_HAS(R, counted),
	      .doc = "Number of calls or bytes that the event concerns."),
	FIELD(R, upto, .has = FIELD_HAS(R, reaches),
	      .doc = "Number of the last record that was removed or lost."),
	FIELD(R, hash, .max = 64, .doc = "Hash of that record's line."),
	FIELD(R, key, .max = 16, .doc = "Start of the SHA-256 of the public key, in hex."),
	FIELD(R, sig, .max = 86, .doc = "Ed25519 over the line without this member."),
};
const struct field_table audit_record_table = FIELD_TABLE(R, record_fields,
							  .doc = "A record of the audit log.");
#undef R

int audit_encode(const struct audit_record *r, struct audit_line *ret, struct err *e)
{
	autobuf struct buf b = BUF_INIT(AUDIT_LINE_MAX);
	struct json_writer w = json_writer(&b);

	if (!buf_reserve(&b, AUDIT_LINE_MAX, e))
		return -1;
	field_encode(&audit_record_table, r, &w);
	if (json_write_done(&w, e) < 0)
		return -1;
	memcpy(ret->text, b.p, b.n);
	ret->text[b.n] = '\0';
	ret->n = b.n;
	return 0;
}

static bool record_may_have(char c)
{
	return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

static struct str record_text(const struct field *row, struct str text, struct arena *a,
			      struct err *e)
{
	size_t n = text.n > (size_t)row->max ? (size_t)row->max : text.n;
	bool clean = true;
	char *to;

	for (size_t i = 0; i < n && clean; i++)
		clean = record_may_have(text.p[i]);
	if (clean)
		return (struct str){ text.p, n };
	to = arena_alloc(a, n, e);
	if (!to)
		return STR_NONE;
	for (size_t i = 0; i < n; i++)
		to[i] = record_may_have(text.p[i]) ? text.p[i] : '?';
	return (struct str){ to, n };
}

int audit_clean(struct audit_record *r, struct arena *a, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(record_fields); i++) {
		const struct field *row = &record_fields[i];
		struct str *text = (struct str *)(void *)((char *)r + row->at);

		if (row->kind != FIELD_IS_STR || !text->p)
			continue;
		*text = record_text(row, *text, a, e);
		if (!text->p)
			return -1;
	}
	return 0;
}

struct json_doc *audit_decode(struct str text, struct arena *a, struct audit_record *ret,
			      struct err *e)
{
	const struct json_options o = { .bytes = 4 * AUDIT_LINE_MAX, .values = 128, .depth = 1 };
	AUTO(json_free) struct json_doc *d = json_parse(text, &o, e);

	if (!d || field_decode(&audit_record_table, json_root(d), a, ret, e) < 0)
		return NULL;
	return take_ptr(d);
}

struct str audit_time(int64_t unix_ms, char room[AUDIT_TIME])
{
	time_t s = (time_t)(unix_ms / 1000);
	struct tm t;

	gmtime_r(&s, &t);
	snprintf(room, AUDIT_TIME, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		 (unsigned)(t.tm_year + 1900) % 10000, (unsigned)(t.tm_mon + 1) % 100,
		 (unsigned)t.tm_mday % 100, (unsigned)t.tm_hour % 100, (unsigned)t.tm_min % 100,
		 (unsigned)t.tm_sec % 100, (unsigned)(unix_ms % 1000));
	return (struct str){ room, AUDIT_TIME - 1 };
}
