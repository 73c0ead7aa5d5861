/*
 * What an agent asks: permissions become questions to people, and files are those of its sandbox,
 * below the conversation's folder.
 */
#include "agents/internal.h"
#include "base/log.h"
#include "json/document/put.h"
#include "json/document/utf8.h"

enum {
	EVENT_ROOM = 64 << 10,
	EVENT_MIN = 256,
	EVENT_TITLE_MAX = 4096, /* bytes */
	HEADING_ROOM = 160,
	ASKED_MAX = 500, /* bytes of a question; its text has the rest */
};

/* ---- permissions ----------------------------------------------------------------------------- */

/* One that waits for a person: ask->data. */
struct permission {
	struct agent *of;
	struct acp_ask *ask;
	struct question_wait wait;
};

/* The event of a permission that no person was asked for: the others are questions. chosen: by
 * itself; why: it was denied, since nobody could be asked. */
static void permission_event(struct agent *a, const struct acp_ask *q,
			     const struct acp_option *chosen, const struct err *why)
{
	struct str title = utf8_cut(q->permission.title, EVENT_TITLE_MAX);
	autobuf struct buf b = BUF_INIT(EVENT_ROOM);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	json_put_str(&w, "title", title);
	if (title.n < q->permission.title.n)
		json_put_bool(&w, "truncated", true);
	if (q->permission.tool_call_id.n)
		json_put_str(&w, "tool_call_id", q->permission.tool_call_id);
	json_put_text(&w, "outcome", chosen ? "auto_approved" : "cancelled");
	if (why)
		json_put_text(&w, "message", why->msg);
	if (chosen) {
		json_put_str(&w, "selected_option", chosen->id);
		json_put_str(&w, "label", chosen->name);
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

/* At most max bytes of s. One that was cut shows it, in the room of as many bytes. */
static struct str permission_short(struct str s, char *room, size_t max)
{
	static const char cut[] = "\u2026";
	struct str front;

	if (s.n <= max)
		return s;
	front = utf8_cut(s, max - strlen(cut));
	memcpy(room, front.p, front.n);
	memcpy(room + front.n, cut, strlen(cut));
	return (struct str){ room, front.n + strlen(cut) };
}

static int permission_add(struct buf *text, struct str part, struct err *e)
{
	if (part.n == 0)
		return 0;
	return text->n && buf_add(text, "\n\n", 2, e) < 0 ? -1 : buf_add(text, part.p, part.n, e);
}

/* Whether the question, its text or the arguments of the call say s already. */
static bool permission_says(const struct acp_ask *q, const struct json_val *input, struct str s)
{
	struct json_iter it = json_iter(input);

	if (s.n == 0)
		return false;
	while (json_next(&it)) {
		if (str_eq(json_str(it.val), s))
			return true;
	}
	return str_eq(s, q->permission.title) || str_eq(s, q->permission.command) ||
	       str_eq(s, q->permission.description);
}

/* "name: value"; a text of several lines begins on its own. */
static int permission_add_named(struct buf *text, struct str name, const struct json_val *v,
				struct err *e)
{
	struct str s = json_str(v);
	struct json_writer w = json_writer(text);
	const char *lines = s.n && memchr(s.p, '\n', s.n) ? "\n" : " ";

	if (buf_addf(text, e, "%s%.*s:%s", text->n ? "\n\n" : "", STR_ARG(name), lines) < 0)
		return -1;
	if (s.p)
		return buf_add(text, s.p, s.n, e);
	json_write_val(&w, v);
	return json_write_done(&w, e);
}

/* Where the call acts: "path" or "path:line", one a line. */
static int permission_add_locations(struct buf *text, const struct json_val *list, struct err *e)
{
	struct json_iter it = json_iter(list);
	bool first = true;

	while (json_next(&it)) {
		struct str path = json_str(json_get(it.val, "path"));
		uint64_t line = 0;

		if (!path.n)
			continue;
		if (buf_addf(text, e, "%s%.*s",
			     first && text->n ? "\n\nin: "
			     : first	      ? "in: "
					      : "\n    ",
			     STR_ARG(path)) < 0 ||
		    (json_uint64(json_get(it.val, "line"), &line) &&
		     buf_addf(text, e, ":%llu", (unsigned long long)line) < 0))
			return -1;
		first = false;
	}
	return 0;
}

/* A block of the call's content: what it would write into a file, or a text such as a plan. */
static int permission_add_block(const struct acp_ask *q, const struct json_val *input,
				const struct json_val *block, struct buf *text, struct err *e)
{
	static const char *const of_diff[] = { "path", "oldText", "newText" };
	struct str said = json_str(json_get(json_get(block, "content"), "text"));

	for (size_t i = 0; i < ARRAY_LEN(of_diff); i++) {
		const struct json_val *v = json_get(block, of_diff[i]);

		if (json_str(v).p && !permission_says(q, input, json_str(v)) &&
		    permission_add_named(text, str_of(of_diff[i]), v, e) < 0)
			return -1;
	}
	return permission_says(q, input, said) ? 0 : permission_add(text, said, e);
}

/* The effect of the call: its kind, where it acts, its arguments, and what it would write. */
static int permission_add_call(const struct acp_ask *q, const struct call_about *c,
			       struct buf *text, struct err *e)
{
	const struct json_val *input = c->v[CALL_INPUT];
	struct json_iter it = json_iter(input);
	struct json_iter blocks = json_iter(c->v[CALL_CONTENT]);

	if (json_type(c->v[CALL_KIND]) == JSON_STR &&
	    permission_add_named(text, STR_LIT("kind"), c->v[CALL_KIND], e) < 0)
		return -1;
	if (permission_add_locations(text, c->v[CALL_LOCATIONS], e) < 0)
		return -1;
	if (json_type(input) != JSON_OBJECT && json_type(input) > JSON_NULL &&
	    !permission_says(q, NULL, json_str(input)) &&
	    permission_add_named(text, STR_LIT("input"), input, e) < 0)
		return -1;
	while (json_type(input) == JSON_OBJECT && json_next(&it)) {
		if (!permission_says(q, NULL, json_str(it.val)) &&
		    permission_add_named(text, it.key, it.val, e) < 0)
			return -1;
	}
	while (json_next(&blocks)) {
		if (permission_add_block(q, input, blocks.val, text, e) < 0)
			return -1;
	}
	return 0;
}

static struct str permission_title(const struct acp_ask *q, const struct call_about *c)
{
	return q->permission.title.n ? q->permission.title : json_str(c->v[CALL_TITLE]);
}

/* What is behind the question, and all of what is cut there and in the labels: nobody allows what
 * is not shown. */
static int permission_text(const struct acp_ask *q, const struct call_about *c, struct buf *text,
			   struct err *e)
{
	struct str title = permission_title(q, c);
	int done = title.n > ASKED_MAX ? permission_add(text, title, e) : 0;

	if (done == 0 && !str_eq(q->permission.command, title))
		done = permission_add(text, q->permission.command, e);
	if (done == 0 && !str_eq(q->permission.description, q->permission.command))
		done = permission_add(text, q->permission.description, e);
	if (done == 0)
		done = permission_add_call(q, c, text, e);
	for (size_t i = 0; i < q->permission.options.n && done == 0; i++) {
		struct str name = q->permission.options.p[i].name;

		if (name.n > QUESTION_LABEL_MAX)
			done = permission_add(text, name, e);
	}
	if (done < 0 || utf8_count(buf_str(text)) > QUESTION_WHOLE_MAX)
		return err_set(e, ERR_TOO_LARGE,
			       "a permission of more than %d characters can't be shown",
			       QUESTION_WHOLE_MAX);
	return 0;
}

/* The heading, in the hub's words: all others of a permission are the agent's own. */
static const char *permission_heading(struct agent *a, const struct call_about *c,
				      char room[HEADING_ROOM])
{
	static const char *const acts[][2] = {
		{ "read", "read" },
		{ "edit", "change files" },
		{ "delete", "delete files" },
		{ "move", "move files" },
		{ "search", "search" },
		{ "execute", "run a command" },
		{ "fetch", "use the network" },
		{ "switch_mode", "change its mode" },
	};
	struct str kind = json_str(c->v[CALL_KIND]);
	const char *act = "go on";

	for (size_t i = 0; i < ARRAY_LEN(acts); i++) {
		if (str_is(kind, acts[i][0]))
			act = acts[i][1];
	}
	snprintf(room, HEADING_ROOM, "Agent %.*s asks to %s", STR_ARG(a->conf->name), act);
	return room;
}

static int permission_ask_about(struct permission *p, const struct call_about *about,
				const struct question **ret, struct err *e)
{
	const struct acp_ask *q = p->ask;
	struct agent *a = p->of;
	struct question_option options[ACP_OPTIONS_MAX];
	char asked[ASKED_MAX], labels[ACP_OPTIONS_MAX][QUESTION_LABEL_MAX];
	autobuf struct buf text = BUF_INIT(4 * QUESTION_WHOLE_MAX);
	char heading[HEADING_ROOM];
	struct str title = permission_title(q, about);
	size_t said = 2 * EVENT_MIN + title.n;
	struct question_ask ask = {
		.principal = conversation_record(a->conversation)->owner,
		.session = str_of(conversation_id(a->conversation)),
		.kind = QUESTION_PERMISSION,
		.origin = QUESTION_OF_ACP,
		.spec = { .question = title.n ? permission_short(title, asked, ASKED_MAX)
					      : STR_LIT("May the agent go on?"),
			  .options = { options, q->permission.options.n },
			  .tool_call_id = q->permission.tool_call_id },
		.timeout_ms = a->conf->permission_seconds * 1000ull,
	};

	for (size_t i = 0; i < q->permission.options.n; i++) {
		const struct acp_option *o = &q->permission.options.p[i];

		options[i] = (struct question_option){
			.id = o->id,
			.label = permission_short(o->name, labels[i], QUESTION_LABEL_MAX),
			.kind = o->kind_name
		};
		said += EVENT_MIN + o->id.n + o->name.n;
	}
	if (permission_text(q, about, &text, e) < 0 || agent_said(a, said + text.n, e) < 0)
		return -1;
	ask.spec.title = str_of(permission_heading(a, about, heading));
	ask.spec.text = text.n ? buf_str(&text) : STR_NONE;
	return question_ask(a->all->questions, &ask, &p->wait, ret, e);
}

static int permission_ask(struct permission *p, const struct question **ret, struct err *e)
{
	struct call_about about;
	int done = agent_call_about(p->of, p->ask, &about, e);

	if (done == 0)
		done = permission_ask_about(p, &about, ret, e);
	call_about_fini(&about);
	return done;
}

static void permission_asked(struct agent *a, struct acp_ask *q)
{
	const struct acp_option *once =
		conversation_has_flag(a->conversation, CONVERSATION_FLAG_auto_approve_permissions)
			? permission_once(q)
			: NULL;
	struct permission *p;
	const struct question *asked;
	struct err e;

	if (once) {
		permission_event(a, q, once, NULL);
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
		permission_event(a, q, NULL, &e);
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

	if (!a->conversation)
		return;
	json_write_object(&w);
	json_put_str(&w, "path", path);
	json_put_uint(&w, "size", n);
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
