/* audit.list and audit.get: records of the audit log. Who does not see what belongs to others sees
 * the records of its own calls only. The log is read on a thread of the pool. */
#include "op/audit.h"

#include <stdlib.h>

#include "call/call.h"
#include "call/guard.h"
#include "guard/audit/audit.h"
#include "guard/audit/query.h"
#include "guard/audit/verify.h"
#include "op/ops.h"
#include "op/page.h"

/* One search; freed when it has been answered. */
struct search {
	uv_work_t work;
	struct call *call;
	struct audit *audit;
	struct audit_query query; /* of audit.list */
	struct audit_page page;
	struct audit_found found;
	struct str id; /* of audit.get */
	struct audit_line receipt;
	int rc;
	struct err err;
};

static struct str search_text(void *data, const struct field *row, struct str text)
{
	struct search *s = data;
	char *copy = text.p ? arena_dup(call_arena(s->call), text, &s->err) : NULL;

	if (text.p && !copy)
		s->rc = -1;
	return copy ? (struct str){ copy, text.n } : STR_NONE;
}

/* A line as a record that lives as long as the call. */
static int search_decode(struct search *s, const struct audit_line *line, struct audit_record *ret)
{
	const struct str text = { line->text, line->n };
	struct arena *a = call_arena(s->call);
	struct audit_record r;
	const struct audit_record *copy;
	AUTO(json_free) struct json_doc *d = audit_decode(text, a, &r, &s->err);

	if (!d)
		return -1;
	copy = field_copy(&audit_record_table, &r, a, search_text, s, &s->err);
	if (!copy || s->rc < 0)
		return -1;
	*ret = *copy;
	return 0;
}

static void search_end(struct search *s, const struct field_table *t, const void *result)
{
	struct call *c = s->call;
	struct err e = s->err;

	free(s->found.lines);
	free(s);
	if (result)
		call_answer_by(c, t, result);
	else
		call_fail(c, &e);
}

static void search_start(struct call *c, const struct search *from, uv_work_cb work,
			 uv_after_work_cb worked)
{
	struct search *s = calloc(1, sizeof(*s));
	struct err e;

	if (!call_guard(c)->audit) {
		err_set(&e, ERR_UNSUPPORTED, "this hub keeps no audit log");
	} else if (!s) {
		err_set(&e, ERR_LIMIT, "out of memory");
	} else {
		*s = *from;
		s->call = c;
		s->audit = call_guard(c)->audit;
		s->work.data = s;
		if (uv_queue_work(call_loop(c), &s->work, work, worked) == 0)
			return;
		err_set(&e, ERR_LIMIT, "out of memory");
	}
	free(s);
	call_fail(c, &e);
}

/* ---- audit.list ---------------------------------------------------------------------------- */

#define Q struct list_request
struct list_request {
	bool has_after;
	uint64_t after;
	uint32_t limit;
	struct str who, action, target, outcome;
	bool reads;
};
static const struct field list_fields[] = {
	FIELD(Q, after, .max = INT64_MAX, .has = FIELD_HAS(Q, has_after),
	      .doc = "Only records with a higher seq; absent: the newest."),
	FIELD(Q, limit, .min = 1, .max = PAGE_MAX, .def = DEFAULT_INT(PAGE_DEFAULT),
	      .doc = "Maximum number of records to return."),
	FIELD(Q, who, .min = 1, .max = 72, .doc = "Only calls of this principal."),
	FIELD(Q, action, .min = 1, .max = 32, .doc = "Only calls of this operation."),
	FIELD(Q, target, .min = 1, .max = 64, .doc = "Only calls that name this sandbox."),
	FIELD(Q, outcome, .min = 1, .max = 28,
	      .doc = "Only calls with this outcome: ok, or the name of a failure."),
	FIELD(Q, reads, .def = DEFAULT_BOOL(true),
	      .doc = "Also reads that have succeeded. Without them what changed something remains, "
		     "and what failed."),
};
#undef Q
static const struct field_table list_table = FIELD_TABLE(struct list_request, list_fields);

static const struct field page_fields[] = {
	FIELD_OBJECTS(struct audit_page, records, audit_record_table, .flags = FIELD_REQUIRED,
		      .doc = "In order of seq."),
	FIELD(struct audit_page, next, .flags = FIELD_REQUIRED,
	      .doc = "Value of after for the next page, even if it has no records yet."),
};
static const struct field_table page_table = FIELD_TABLE(struct audit_page, page_fields);

/* The records are decoded here, too, since a thousand of them take the loop some milliseconds. The
 * call's arena is its alone meanwhile. */
static void list_work(uv_work_t *work)
{
	struct search *s = work->data;
	struct audit_record *p;

	s->page.next = s->query.after;
	if (audit_search(audit_folder(s->audit), &s->query, &s->found, &s->err) < 0)
		return;
	p = arena_array(call_arena(s->call), s->found.n, sizeof(*p), &s->err);
	for (size_t i = 0; p && i < s->found.n; i++) {
		if (search_decode(s, &s->found.lines[i], &p[i]) < 0)
			return;
		s->page.next = p[i].seq;
	}
	s->page.records.p = p;
	s->page.records.n = p ? s->found.n : 0;
}

static void list_worked(uv_work_t *work, int status)
{
	struct search *s = work->data;
	struct audit_page page = s->page;

	search_end(s, &page_table, page.records.p ? &page : NULL);
}

static void list_run(struct call *c, const void *request)
{
	const struct list_request *q = request;
	struct str own = call_owner_seen(c);
	struct search s = { .query = { .who = q->who,
				       .action = q->action,
				       .target = q->target,
				       .outcome = q->outcome,
				       .no_reads = !q->reads,
				       .has_after = q->has_after,
				       .after = q->after,
				       .limit = q->limit } };

	if (own.n && (!q->who.n || audit_is_of(own, q->who)))
		s.query.who = own;
	else if (own.n)
		s.query.who = STR_LIT(""); /* nobody's */
	search_start(c, &s, list_work, list_worked);
}

const struct op audit_list_op = {
	.action = "audit.list",
	.doc = "List records of the audit log.",
	.effect = OP_READ,
	.request = &list_table,
	.result = &page_table,
	.run = list_run,
};

/* ---- audit.get ----------------------------------------------------------------------------- */

struct get_request {
	struct str id;
};
static const struct field get_fields[] = {
	FIELD(struct get_request, id, .flags = FIELD_REQUIRED, .min = 1, .max = 40,
	      .doc = "Audit id of a call."),
};
static const struct field_table get_table = FIELD_TABLE(struct get_request, get_fields);

static const struct field view_fields[] = {
	FIELD_OBJECT(struct audit_view, record, audit_record_table, .flags = FIELD_REQUIRED,
		     .doc = "The record as the log holds it."),
	FIELD_OBJECT(struct audit_view, receipt, audit_record_table, .flags = FIELD_REQUIRED,
		     .doc = "The record with a signature, which can be verified without the log."),
};
static const struct field_table view_table = FIELD_TABLE(struct audit_view, view_fields);

static void get_work(uv_work_t *work)
{
	struct search *s = work->data;
	int found;

	s->found.lines = calloc(1, sizeof(*s->found.lines));
	if (!s->found.lines) {
		s->rc = err_set(&s->err, ERR_LIMIT, "out of memory");
		return;
	}
	found = audit_find(audit_folder(s->audit), s->id, s->found.lines, &s->err);
	if (found == 0)
		err_set(&s->err, ERR_AUDIT_NOT_FOUND, "the audit log has no record %.40s", s->id.p);
	s->rc = found <= 0 ? -1 : audit_receipt(s->audit, s->found.lines, &s->receipt, &s->err);
}

static void get_worked(uv_work_t *work, int status)
{
	struct search *s = work->data;
	struct str own = call_owner_seen(s->call);
	struct audit_view v;
	bool good = s->rc == 0 && search_decode(s, s->found.lines, &v.record) == 0 &&
		    search_decode(s, &s->receipt, &v.receipt) == 0;

	if (good && own.n && !str_eq(v.record.who, own)) {
		err_set(&s->err, ERR_AUDIT_NOT_FOUND, "the audit log has no record %.40s", s->id.p);
		good = false;
	}
	search_end(s, &view_table, good ? &v : NULL);
}

static void get_run(struct call *c, const void *request)
{
	const struct get_request *q = request;

	search_start(c, &(struct search){ .id = q->id }, get_work, get_worked);
}

const struct op audit_get_op = {
	.action = "audit.get",
	.doc = "Get the record of one call, and its receipt.",
	.effect = OP_READ,
	.request = &get_table,
	.result = &view_table,
	.run = get_run,
};
