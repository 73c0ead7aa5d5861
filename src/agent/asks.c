/*
 * What an agent asks: permissions become questions to people, and files are those of its sandbox,
 * below the conversation's folder.
 */
#include "agent/internal.h"
#include "base/log.h"
#include "json/document/utf8.h"

enum { EVENT_ROOM = 64 << 10, EVENT_MIN = 256 };

/* ---- permissions ----------------------------------------------------------------------------- */

/* One that waits for a person: ask->data. */
struct permission {
	struct agent *of;
	struct acp_ask *ask;
	struct question_wait wait;
};

/* The event of a permission that no person was asked for: the others are questions. */
static void permission_event(struct agent *a, const struct acp_ask *q, const char *outcome,
			     const struct acp_option *chosen)
{
	autobuf struct buf b = BUF_INIT(EVENT_ROOM);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	json_write_name(&w, "title");
	json_write_str(&w, q->permission.title);
	if (q->permission.tool_call_id.n) {
		json_write_name(&w, "tool_call_id");
		json_write_str(&w, q->permission.tool_call_id);
	}
	json_write_name(&w, "outcome");
	json_write_text(&w, outcome);
	if (chosen) {
		json_write_name(&w, "selected_option");
		json_write_str(&w, chosen->id);
		json_write_name(&w, "label");
		json_write_str(&w, chosen->name);
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
	agent_heard(a);
}

static void permission_on_end(void *data, const struct question *q)
{
	struct permission *p = data;
	struct acp_ask *ask = p->ask;
	int at = q->state == QUESTION_ANSWERED ? question_chosen(q) : -1;
	const struct acp_option *chosen = at >= 0 ? &ask->permission.options.p[at] : NULL;
	struct err e;

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
	size_t said = 2 * EVENT_MIN + q->permission.title.n + q->permission.description.n;
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
		said += EVENT_MIN + o->id.n + o->name.n;
	}
	if (agent_said(a, said, e) < 0)
		return -1;
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
		permission_event(a, q, "auto_approved", once);
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
		permission_event(a, q, "cancelled", NULL);
		if (!a->ending)
			acp_deny(q);
		return;
	}
	q->data = p;
	a->waits++;
	agent_heard(a);
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
		permission_free(p);
	} else if ((q->kind == ACP_ASK_READ || q->kind == ACP_ASK_WRITE) && q->data) {
		((struct job *)q->data)->ask = NULL;
	} else if (q->kind == ACP_ASK_EXIT) {
		agent_terminal_withdrawn(a, q);
	}
}
