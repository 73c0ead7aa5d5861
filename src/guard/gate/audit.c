/*
 * What is recorded: the hook audit, which every call reaches. An id is made by call/call.c before
 * the call begins, and the record when it has ended. What changes something, and what was denied,
 * is on the disk before it is answered. A call that needs a record which can't be kept is not run.
 */
#include "guard/gate/internal.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/id.h"
#include "base/log.h"
#include "guard/audit/audit.h"
#include "hub/core/hub.h"
#include "hub/sandbox/sandbox.h"

enum {
	LARGE = 32 << 10, /* takes longer to digest than others may wait for the loop */
	SHORT = 1 << 10, /* up to which sha256_hex() is as fast as base/hash.h */
	EVENT_ROOM = 256 << 10, /* kept for the JSON of the next event */
};
#define OUTPUT_MAX ((size_t)512 << 20)

struct gate_audit {
	struct gate *gate;
	struct audit *audit; /* NULL: a program without a hub */
	char *folder;
	struct buf event; /* the JSON of an event, while it is digested */
	/* The policy hook, called once the record can be kept; NULL: all are allowed. */
	void (*policy)(void *data, struct call *c);
};

/* The record of one call: lives from its first event, or its end, until it is written. */
struct audit_call {
	struct audit_wait wait;
	struct gate_audit *own;
	struct call *call;
	const struct op_outcome *outcome;
	bool refused; /* because of the log: this has no record */
	struct hash *stream; /* of the events so far; NULL: there were none */
	uint64_t bytes;
	char args[OP_DIGEST], output[OP_DIGEST];
	uv_work_t work;
};

static struct audit_call *audit_call(const struct gate *g, struct call *c)
{
	struct gate_call *state = gate_call(c);

	if (state && !state->audit) {
		state->audit = mem_zalloc(sizeof(*state->audit));
		if (!state->audit)
			return NULL;
		state->audit->own = g->audit;
		state->audit->call = c;
	}
	return state ? state->audit : NULL;
}

/* ---- digests ------------------------------------------------------------------------------- */

static struct str size_add(void *data, const struct field *row, struct str text)
{
	*(size_t *)data += text.n;
	return STR_NONE; /* only counted: nothing is copied */
}

size_t gate_bytes(const struct field_table *t, const void *from)
{
	AUTO(arena_free) struct arena *a = from ? arena_new(OUTPUT_MAX) : NULL;
	size_t n = 0;
	struct err e;

	return a && field_copy(t, from, a, size_add, &n, &e) ? n : 0;
}

/* Adds the JSON of the answer; of a stream, behind the lines of its events. */
static void digest_add(struct audit_call *s, const struct field_table *t, const void *from,
		       struct buf *b)
{
	struct json_writer w = json_writer(b);
	struct err e;

	field_encode(t, from, &w);
	if (json_write_done(&w, &e) < 0 || buf_add(b, "\n", 1, &e) < 0)
		return;
	s->bytes += b->n;
	if (!s->stream && b->n <= SHORT) {
		sha256_hex(buf_str(b), s->output);
		return;
	}
	if (!s->stream)
		s->stream = hash_new(&e);
	if (s->stream)
		hash_add(s->stream, b->p, b->n);
}

static void audit_on_sent(void *data, struct call *c, const struct field_table *t,
			  const void *event)
{
	struct audit_call *s = audit_call(data, c);
	struct buf *b = s ? &s->own->event : NULL;
	struct err e;

	if (s && !s->stream)
		s->stream = hash_new(&e);
	if (!s || !s->stream)
		return;
	b->n = 0;
	digest_add(s, t, event, b);
	if (b->cap > EVENT_ROOM)
		buf_fini(b);
}

/* May run on another thread: nothing of the call changes any more. */
static void digest_call(struct audit_call *s)
{
	const struct op *op = call_op(s->call);
	const void *request = call_request(s->call);
	autobuf struct buf b = BUF_INIT(OUTPUT_MAX);
	struct err e;

	if (request && op_digest(op, request, s->args, &e) < 0)
		s->args[0] = '\0'; /* what is no UTF-8 has no canonical form */
	if (s->outcome->table && s->outcome->result)
		digest_add(s, s->outcome->table, s->outcome->result, &b);
	if (s->stream)
		hash_end(s->stream, s->output);
}

/* ---- records ------------------------------------------------------------------------------- */

static struct str audit_target(struct call *c)
{
	const struct call_about *about = call_about(c);
	const void *request = call_request(c);
	struct str named = request ? op_target(call_op(c), request) : STR_NONE;

	return named.n ? named : about->sandbox.n ? about->sandbox : about->snapshot;
}

static int audit_record(struct audit_call *s, struct arena *a, struct audit_record *ret,
			struct err *e)
{
	struct call *c = s->call;
	struct gate_call *state = gate_call(c);
	const struct principal *who = call_principal(c);
	bool decided = call_request(c) && state;

	*ret = (struct audit_record){
		.id = str_of(call_audit_id(c)),
		.who = who ? principal_owner(who) : STR_NONE,
		.action = str_of(call_op(c)->action),
		.effect = str_of(op_effect_names[call_op(c)->effect]),
		.target = gate_redact_text(s->own->gate, audit_target(c), a),
		.args = *s->args ? str_of(s->args) : STR_NONE,
		.output = *s->output ? str_of(s->output) : STR_NONE,
		.decision = decided ? str_of(config_then_names[state->decision]) : STR_NONE,
		.rule = decided ? state->place : STR_NONE,
		.approval = decided ? state->approval : STR_NONE,
		.outcome = str_of(s->outcome->err ? err_info(s->outcome->err->code)->name : "ok"),
		.timed = true,
		.ms = s->outcome->taken_ms,
		.bytes = s->bytes,
	};
	return audit_clean(ret, a, e);
}

/* Whether it decides what others may, or was decided by somebody: then its record is on the disk
 * before the answer. All others would wait for a disk that any sandbox can keep busy. One that was
 * cancelled is told at once: its client has left, or the hub ends and syncs the log itself. So is a
 * mistake of the client, which has changed nothing. */
static bool audit_authorises(const struct audit_call *s)
{
	struct gate_call *state = gate_call(s->call);
	const struct err *err = s->outcome->err;

	if (err &&
	    (err->code == ERR_CANCELLED || err_info(err->code)->failure == FAILURE_VALIDATION))
		return false;
	return call_request(s->call) &&
	       (call_op(s->call)->effect == OP_ADMINISTER || (err && err->code == ERR_DENIED) ||
		(state && state->approval.n));
}

static void audit_end(struct audit_call *s)
{
	struct gate_call *state = gate_call(s->call);
	struct call *c = s->call;

	state->audit = NULL;
	hash_free(s->stream);
	free(s);
	call_audited(c);
}

static void audit_on_written(struct audit_wait *w)
{
	struct audit_call *s = (struct audit_call *)(void *)w; /* its first member */

	if (w->receipt && w->line.n)
		call_set_receipt(s->call, (struct str){ w->line.text, w->line.n });
	audit_end(s);
}

static struct audit_limits audit_limits(const struct gate *g)
{
	const struct config_audit *a = &config_file(g->config)->audit;

	return (struct audit_limits){ (uint64_t)a->file_mb << 20, a->files, a->days };
}

static void audit_write(struct audit_call *s)
{
	struct audit_record r;
	struct audit_limits limits;
	struct arena a;
	struct err e;
	int rc;

	arena_init(&a, 16 << 10);
	rc = audit_record(s, &a, &r, &e);
	if (rc == 0 && s->own->audit) {
		s->wait.done = audit_on_written;
		s->wait.synced = audit_authorises(s);
		s->wait.receipt = call_op(s->call)->receipt ||
				  (call_by_agent(s->call) &&
				   (s->wait.synced || call_op(s->call)->effect != OP_READ));
		audit_add(s->own->audit, &r, &s->wait);
	} else {
		limits = audit_limits(s->own->gate);
		if (rc == 0)
			rc = audit_add_one(s->own->folder, &limits, &r, &e);
		if (rc < 0)
			log_error("a record of the audit log is lost: %s", e.msg);
		audit_end(s);
	}
	arena_fini(&a);
}

static void audit_work(uv_work_t *work)
{
	digest_call(work->data);
}

static void audit_worked(uv_work_t *work, int status)
{
	audit_write(work->data);
}

static void audit_on_audit(void *data, struct call *c, const struct op_outcome *o)
{
	struct audit_call *s = audit_call(data, c);
	const void *request = call_request(c);
	size_t n;

	if (o->err && !call_begun(c))
		gate_approval_undone(data, c);
	if (!s) {
		log_error("out of memory: a record of the audit log is lost");
		call_audited(c);
		return;
	}
	if (s->refused) {
		audit_end(s);
		return;
	}
	s->outcome = o;
	n = (request ? gate_bytes(call_op(c)->request, request) : 0) +
	    (o->table ? gate_bytes(o->table, o->result) : 0);
	s->work.data = s;
	if (n < LARGE || uv_queue_work(call_loop(c), &s->work, audit_work, audit_worked) < 0) {
		digest_call(s);
		audit_write(s);
	}
}

/* ---- before a call runs -------------------------------------------------------------------- */

static bool audit_is_light(const struct call *c)
{
	enum op_effect effect = call_op(c)->effect;

	return effect == OP_READ || effect == OP_DESTROY;
}

static void audit_on_policy(void *data, struct call *c)
{
	struct gate *g = data;
	struct gate_audit *own = g->audit;
	struct audit_call *s = audit_call(g, c);
	struct err e;

	if (!s || (own->audit ? audit_check(own->audit, audit_is_light(c), &e)
			      : audit_check_one(own->folder, &e)) < 0) {
		if (s)
			s->refused = true;
		else
			err_set(&e, ERR_LIMIT, "out of memory");
		call_deny(c, &e);
	} else if (own->policy) {
		own->policy(data, c);
	} else {
		call_allow(c);
	}
}

/* ---- what is no call ----------------------------------------------------------------------- */

static void note_written(struct audit_wait *w)
{
}

/* Nobody waits for the record. detail: what it tells the digest of. */
static void audit_note(struct gate *g, struct audit_record *r, struct str detail)
{
	char id[ID_MAX], digest[SHA256_HEX];
	struct audit_wait w = { .done = note_written };
	struct arena a;
	struct err e;

	id_make(id, "run");
	id[3] = '_';
	r->id = str_of(id);
	sha256_hex(detail, digest);
	r->args = str_of(digest);
	arena_init(&a, 16 << 10);
	r->target = gate_redact_text(g, r->target, &a);
	if (audit_clean(r, &a, &e) == 0)
		audit_add(g->audit->audit, r, &w);
	arena_fini(&a);
}

/* A connection of a program, or that one was denied. */
static void audit_on_flow(void *data, const struct hub_flow *f)
{
	struct gate *g = data;
	struct audit_record r = { .who = f->owner,
				  .action = str_of(f->kind),
				  .effect = str_of(op_effect_names[OP_EXECUTE]),
				  .target = f->sandbox,
				  .outcome = str_of(f->denied	? err_info(ERR_DENIED)->name
						    : f->failed ? err_info(ERR_TRANSPORT)->name
								: "ok"),
				  .timed = true,
				  .ms = f->ms,
				  .bytes = f->bytes };

	if (g->audit)
		audit_note(g, &r, f->detail);
}

void gate_audit_note(struct gate *g, const struct principal *who, const char *action,
		     struct str target)
{
	struct audit_record r = { .who = principal_owner(who),
				  .action = str_of(action),
				  .effect = str_of(op_effect_names[OP_ADMINISTER]),
				  .target = target,
				  .outcome = STR_LIT("ok") };

	if (g->audit && g->audit->audit)
		audit_note(g, &r, target);
}

int gate_check_audit(const struct config *c, const char *folder, struct err *e)
{
	return config_file(c)->audit.off || !folder ? 0 : audit_log_check(folder, e);
}

/* ---- the part ------------------------------------------------------------------------------ */

int gate_audit_open(struct gate *g, struct err *e)
{
	const char *folder = g->audit_folder;
	struct gate_audit *own;

	if (config_file(g->config)->audit.off || !folder)
		return 0;
	own = g->audit = calloc(1, sizeof(*own));
	if (!own)
		return err_set(e, ERR_LIMIT, "out of memory");
	own->gate = g;
	own->event = BUF_INIT(OUTPUT_MAX);
	own->folder = mem_dup(folder, strlen(folder));
	if (!own->folder)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (g->loop)
		own->audit = audit_open(&(struct audit_options){ .folder = folder,
								 .version = HOLT_VERSION,
								 .loop = g->loop,
								 .limits = audit_limits(g) },
					e);
	if (g->loop && !own->audit) {
		gate_audit_close(g);
		return -1;
	}
	own->policy = g->hooks.policy;
	g->hooks.policy = audit_on_policy;
	g->hooks.sent = audit_on_sent;
	g->hooks.audit = audit_on_audit;
	g->guard.audit = own->audit;
	return 0;
}

void gate_audit_listen(struct gate *g)
{
	if (g->hub && g->audit)
		hub_sandboxes_tell_flows(hub_sandboxes(g->hub), audit_on_flow, g);
}

void gate_audit_close(struct gate *g)
{
	struct gate_audit *own = take_ptr(g->audit);

	if (!own)
		return;
	audit_close(own->audit);
	buf_fini(&own->event);
	free(own->folder);
	free(own);
}

void gate_audit_reload(struct gate *g)
{
	struct audit_limits l = audit_limits(g);

	if (g->audit && g->audit->audit)
		audit_limit(g->audit->audit, &l);
}

int gate_ready(const struct gate *g, struct err *e)
{
	struct audit_status s = { .failing = false };

	if (g->audit && g->audit->audit)
		audit_status(g->audit->audit, &s);
	if (s.failing)
		*e = s.why;
	return s.failing ? -1 : 0;
}
