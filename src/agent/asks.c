/*
 * What an agent asks: permissions become questions to people, and files are those of its sandbox,
 * below the conversation's folder.
 */
#include "agent/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/when.h"
#include "json/document/utf8.h"

enum { EVENT_ROOM = 64 << 10 };

/* ---- permissions ----------------------------------------------------------------------------- */

/* One that waits for a person: ask->data. */
struct permission {
	struct agent *of;
	struct acp_ask *ask;
	struct question_wait wait;
	char id[64]; /* of the question */
};

static void write_options(struct json_writer *w, const struct acp_ask *q)
{
	json_write_name(w, "options");
	json_write_array(w);
	for (size_t i = 0; i < q->permission.options.n; i++) {
		const struct acp_option *o = &q->permission.options.p[i];

		json_write_object(w);
		json_write_name(w, "id");
		json_write_str(w, o->id);
		json_write_name(w, "label");
		json_write_str(w, o->name);
		json_write_name(w, "kind");
		json_write_str(w, o->kind_name);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

/* The event of a permission: when it is asked, and with its outcome. */
static void permission_event(struct agent *a, const struct acp_ask *q, const char *id,
			     const char *outcome, const struct acp_option *chosen, struct str by)
{
	autobuf struct buf b = BUF_INIT(EVENT_ROOM);
	struct json_writer w = json_writer(&b);
	char until[WHEN_MAX];

	json_write_object(&w);
	if (*id) {
		json_write_name(&w, "request_id");
		json_write_text(&w, id);
	}
	json_write_name(&w, "title");
	json_write_str(&w, q->permission.title);
	if (q->permission.tool_call_id.n) {
		json_write_name(&w, "tool_call_id");
		json_write_str(&w, q->permission.tool_call_id);
	}
	if (outcome) {
		json_write_name(&w, "outcome");
		json_write_text(&w, outcome);
	} else {
		write_options(&w, q);
		when_text(until, clock_unix_ms() + a->conf->permission_seconds * 1000ll);
		json_write_name(&w, "expires_at");
		json_write_text(&w, until);
	}
	if (chosen) {
		json_write_name(&w, "selected_option");
		json_write_str(&w, chosen->id);
		json_write_name(&w, "label");
		json_write_str(&w, chosen->name);
	}
	if (by.n) {
		json_write_name(&w, "by");
		json_write_str(&w, by);
	}
	json_write_object_end(&w);
	agent_event(a, "permission", &w, &b);
}

static void permission_free(struct permission *p)
{
	struct agent *a = p->of;

	p->ask->data = NULL;
	free(p);
	a->waits--;
	if (!a->talk)
		return;
	talk_waits(a->talk, false);
	agent_heard(a);
}

static void permission_on_end(void *data, const struct question *q)
{
	static const char *const outcomes[QUESTION_STATES] = {
		[QUESTION_ANSWERED] = "user_selected", [QUESTION_EXPIRED] = "timed_out"
	};
	struct permission *p = data;
	struct agent *a = p->of;
	struct acp_ask *ask = p->ask;
	int at = q->state == QUESTION_ANSWERED ? question_chosen(q) : -1;
	const struct acp_option *chosen = at >= 0 ? &ask->permission.options.p[at] : NULL;
	struct err e;

	permission_event(a, ask, p->id, outcomes[q->state] ?: "cancelled", chosen, q->who);
	if (a->ending)
		return; /* it was withdrawn */
	permission_free(p);
	if (!chosen || acp_permit(ask, chosen->id, &e) < 0)
		acp_deny(ask);
}

static const struct acp_option *permission_once(const struct acp_ask *q)
{
	for (size_t i = 0; i < q->permission.options.n; i++) {
		if (q->permission.options.p[i].kind == ACP_ALLOW_ONCE)
			return &q->permission.options.p[i];
	}
	return NULL;
}

static int permission_ask(struct permission *p, const struct question **ret, struct err *e)
{
	const struct acp_ask *q = p->ask;
	struct agent *a = p->of;
	struct question_option options[ACP_OPTIONS_MAX];
	struct question_ask ask = {
		.principal = talk_record(a->talk)->owner,
		.session = str_of(talk_id(a->talk)),
		.kind = QUESTION_PERMISSION,
		.origin = QUESTION_OF_ACP,
		.spec = { .question = q->permission.title.n ? q->permission.title
							    : STR_LIT("May the agent go on?"),
			  .text = q->permission.description,
			  .options = { options, q->permission.options.n },
			  .tool_call_id = q->permission.tool_call_id },
		.timeout_ms = a->conf->permission_seconds * 1000ull,
	};

	for (size_t i = 0; i < q->permission.options.n; i++) {
		const struct acp_option *o = &q->permission.options.p[i];

		options[i] =
			(struct question_option){ .id = o->id,
						  .label = utf8_cut(o->name, QUESTION_LABEL_MAX),
						  .kind = o->kind_name };
	}
	ask.spec.question = utf8_cut(ask.spec.question, 500);
	return question_ask(a->all->questions, &ask, &p->wait, ret, e);
}

static void permission_asked(struct agent *a, struct acp_ask *q)
{
	const struct acp_option *once = talk_permits(a->talk,
						     CONVERSATION_FLAG_auto_approve_permissions)
					      ? permission_once(q)
					      : NULL;
	struct permission *p;
	const struct question *asked;
	struct err e;

	if (once) {
		permission_event(a, q, "", "auto_approved", once, STR_NONE);
		if (!a->ending && acp_permit(q, once->id, &e) < 0)
			acp_deny(q);
		return;
	}
	p = calloc(1, sizeof(*p));
	if (p)
		*p = (struct permission){ .of = a, .ask = q, .wait = { permission_on_end, p } };
	else
		err_set(&e, ERR_LIMIT, "out of memory");
	if (!p || permission_ask(p, &asked, &e) < 0) {
		log_warn("agent %.*s: nobody can be asked: %s", STR_ARG(a->conf->name), e.msg);
		free(p);
		permission_event(a, q, "", "cancelled", NULL, STR_NONE);
		if (!a->ending)
			acp_deny(q);
		return;
	}
	q->data = p;
	snprintf(p->id, sizeof(p->id), "%.*s", STR_ARG(asked->id));
	a->waits++;
	talk_waits(a->talk, true);
	agent_heard(a);
	permission_event(a, q, p->id, NULL, NULL, STR_NONE);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* A read or a write under way. */
struct job {
	struct agent *of;
	struct acp_ask *ask; /* NULL: nobody waits for it */
	char *text; /* owned; of a write: what is written */
	size_t n;
};

/* Below the conversation's folder, and without a way out of it. */
static bool is_inside(const struct agent *a, struct str path)
{
	struct str cwd = str_of(a->cwd);

	if (path.n <= cwd.n || memcmp(path.p, cwd.p, cwd.n) != 0 || path.p[cwd.n] != '/')
		return false;
	for (size_t i = cwd.n; i + 2 < path.n; i++) {
		if (memcmp(path.p + i, "/..", 3) == 0 && (i + 3 == path.n || path.p[i + 3] == '/'))
			return false;
	}
	return true;
}

static void file_event(struct agent *a, const char *type, struct str path, size_t n)
{
	autobuf struct buf b = BUF_INIT(EVENT_ROOM);
	struct json_writer w = json_writer(&b);

	if (!a->talk)
		return;
	json_write_object(&w);
	json_write_name(&w, "path");
	json_write_str(&w, path);
	json_write_name(&w, "size");
	json_write_uint(&w, n);
	json_write_object_end(&w);
	agent_event(a, type, &w, &b);
}

static void job_end(struct job *j)
{
	struct agent *a = j->of;

	free(j->text);
	free(j);
	agent_on_job(a);
}

/* The lines that were asked for; lines count from 1. */
static struct str lines_of(struct str text, uint32_t line, uint32_t limit)
{
	const char *end;

	for (; line > 1 && text.n > 0; line--) {
		end = memchr(text.p, '\n', text.n);
		if (!end)
			return (struct str){ text.p, 0 };
		text.n -= (size_t)(end + 1 - text.p);
		text.p = end + 1;
	}
	for (size_t i = 0; limit > 0 && i < text.n; i++) {
		if (text.p[i] == '\n' && --limit == 0)
			text.n = i + 1;
	}
	return text;
}

static void on_read(void *arg, struct str bytes, const struct file_stat *st, const struct err *err)
{
	struct job *j = arg;
	struct acp_ask *q = j->ask;
	struct err e;

	if (q)
		q->data = NULL;
	if (q && err) {
		acp_refuse(q, err);
	} else if (q && st->size > FILE_READ_MAX) {
		err_set(&e, ERR_TOO_LARGE, "a file of more than %d bytes", FILE_READ_MAX);
		acp_refuse(q, &e);
	} else if (q) {
		struct str part = lines_of(bytes, q->read.line, q->read.limit);

		file_event(j->of, "file_read", q->read.path, part.n);
		if (!j->of->ending)
			acp_answer_content(q, part);
	}
	job_end(j);
}

static void on_written(void *arg, const struct err *err)
{
	struct job *j = arg;
	struct acp_ask *q = j->ask;

	if (q)
		q->data = NULL;
	if (q && err) {
		acp_refuse(q, err);
	} else if (q) {
		file_event(j->of, "file_write", q->write.path, j->n);
		if (!j->of->ending)
			acp_answer_done(q);
	}
	job_end(j);
}

static void file_asked(struct agent *a, struct acp_ask *q)
{
	static const struct file_write_opts opts = { .make_parents = true };
	bool reads = q->kind == ACP_ASK_READ;
	struct str path = reads ? q->read.path : q->write.path;
	struct job *j;
	struct err e;

	if (!is_inside(a, path)) {
		err_set(&e, ERR_PATH_DENIED, "only files of the conversation's folder");
		acp_refuse(q, &e);
		return;
	}
	j = calloc(1, sizeof(*j));
	if (j && !reads)
		j->text = mem_dup(q->write.content.p, q->write.content.n);
	if (!j || (!reads && !j->text)) {
		free(j);
		err_set(&e, ERR_LIMIT, "out of memory");
		acp_refuse(q, &e);
		return;
	}
	j->of = a;
	j->ask = q;
	q->data = j;
	a->jobs++;
	if (reads) {
		file_read_start(a->place.sandbox, path, 0, FILE_READ_MAX, on_read, j);
		return;
	}
	j->n = q->write.content.n;
	file_write_start(a->place.sandbox, path, (struct str){ j->text, j->n }, &opts, on_written,
			 j);
}

/* ---- all of them ----------------------------------------------------------------------------- */

void agent_asked(struct agent *a, struct acp_ask *q)
{
	if (q->kind == ACP_ASK_PERMISSION)
		permission_asked(a, q);
	else if (q->kind == ACP_ASK_READ || q->kind == ACP_ASK_WRITE)
		file_asked(a, q);
	else
		agent_terminal_asked(a, q);
}

void agent_withdrawn(struct agent *a, struct acp_ask *q)
{
	if (q->kind == ACP_ASK_PERMISSION && q->data) {
		struct permission *p = q->data;

		question_give_up(&p->wait, QUESTION_CANCELLED);
		if (a->talk)
			permission_event(a, q, p->id, "cancelled", NULL, STR_NONE);
		permission_free(p);
	} else if ((q->kind == ACP_ASK_READ || q->kind == ACP_ASK_WRITE) && q->data) {
		((struct job *)q->data)->ask = NULL;
	} else if (q->kind == ACP_ASK_EXIT) {
		agent_terminal_withdrawn(a, q);
	}
}
