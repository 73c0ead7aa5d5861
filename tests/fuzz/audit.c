/*
 * Files of the audit log, as a damaged disk or a stranger may leave them: the first byte picks the
 * reader. What verifies is a log of records in their one form, in order.
 */
#include <sys/mman.h>

#include "fuzz.h"
#include "guard/audit/log.h"
#include "guard/audit/read.h"
#include "guard/audit/verify.h"

static const char pem[] = "-----BEGIN PUBLIC KEY-----\n"
			  "MCowBQYDK2VwAyEAyQ7+gZ9gc7j/35TnnQJanx21RLetkRiyQ530CL2CFvc=\n"
			  "-----END PUBLIC KEY-----\n";

static void check_log(struct str text, const struct audit_public *p)
{
	struct audit_report r;
	int fd = memfd_create("log", MFD_CLOEXEC);

	MUST(fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n);
	audit_verify_file(fd, p, &r);
	MUST((r.verdict == AUDIT_VERIFIED) == (r.why[0] == '\0'));
	MUST(r.verdict != AUDIT_VERIFIED || r.records > 0);
	MUST(r.calls <= r.records && r.records <= text.n);
	close(fd);
}

static void check_receipt(struct str text, const struct audit_public *p)
{
	struct audit_report r;

	audit_verify_receipt(text, -1, p, &r);
	MUST(r.verdict == AUDIT_VERIFIED || r.verdict == AUDIT_MISMATCH);
	MUST(r.verdict == AUDIT_MISMATCH || audit_is_receipt(text));
}

/* A record has one form: written again it is the same. */
static void check_record(struct str text)
{
	AUTO(arena_free) struct arena *a = arena_new(1 << 16), *b = arena_new(1 << 16);
	struct audit_record r, again;
	struct audit_line line, same;
	struct err e;
	AUTO(json_free) struct json_doc *d = a && b ? audit_decode(text, a, &r, &e) : NULL;
	AUTO(json_free) struct json_doc *d2 = NULL;

	if (!d || audit_encode(&r, &line, &e) < 0)
		return;
	MUST(line.n <= AUDIT_LINE_MAX);
	d2 = audit_decode((struct str){ line.text, line.n }, b, &again, &e);
	MUST(d2 && audit_encode(&again, &same, &e) == 0 && strcmp(line.text, same.text) == 0);
}

static void check_head(struct str text)
{
	char again[AUDIT_HEAD_BYTES + 1];
	struct audit_head h;

	if (!audit_head_read(text, &h))
		return;
	audit_head_write(&h, again);
	MUST(str_is(text, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str text = { (const char *)data + 1, n - 1 };
	struct audit_public p, other;
	struct err e;

	MUST(audit_public_read(str_of(pem), &p, &e) == 0);
	switch (n ? data[0] : 0) {
	case 'l':
		check_log(text, &p);
		break;
	case 'r':
		check_receipt(text, &p);
		check_record(text);
		break;
	case 'h':
		check_head(text);
		break;
	case 'k':
		MUST(audit_public_read(text, &other, &e) == 0 || e.code == ERR_INVALID);
		break;
	}
	return 0;
}
