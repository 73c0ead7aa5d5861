/*
 * Requests from the server to its client. Forms are answered by --answer or by the user at the
 * terminal, else declined. Links are accepted by the user or declined, and never opened. Folders
 * are those of --root. Sampling is not offered, as the server learns at the start.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/common/args.h"
#include "cli/peer/internal.h"
#include "cli/common/safe.h"
#include "json/document/write.h"

enum { ANSWER_MAX = 32 << 20 };

int peer_ask_prepare(struct peer *p, struct err *e)
{
	for (size_t i = 0; i < p->o->roots.n; i++) {
		if (access(p->o->roots.p[i], F_OK) < 0)
			return err_set(e, ERR_INVALID, "--root %.120s: %s", p->o->roots.p[i],
				       strerror(errno));
	}
	p->answers = args_read(p->o->answers.p, p->o->answers.n, e);
	return p->answers ? 0 : err_wrap(e, "--answer");
}

unsigned peer_can(const struct peer *p)
{
	return MCP_CAN_FORM | MCP_CAN_URL | MCP_CAN_TASKS |
	       (p->o->roots.n > 0 ? (unsigned)MCP_CAN_ROOTS : 0);
}

static void note(struct peer *p, const char *says, const struct err *e)
{
	fprintf(peer_err(p), "holt mcp: %s", says);
	if (e) {
		fputs(": ", stderr);
		safe_line(stderr, str_of(e->msg));
	}
	fputc('\n', stderr);
}

static void ask_answer(struct peer *p, struct mcp_question *q, struct json_writer *w)
{
	struct err e = ERR_INIT;

	if (json_write_done(w, &e) == 0 && mcp_question_answer(q, buf_str(w->buf), &e) == 0)
		return;
	note(p, "the server's question was declined", &e);
	mcp_question_refuse(q, "the client has no matching answer");
}

void peer_answer_action(struct peer *p, struct mcp_question *q, const char *action)
{
	autobuf struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer(&b);

	json_write_object(&w);
	json_write_key(&w, "action");
	json_write_text(&w, action);
	json_write_object_end(&w);
	ask_answer(p, q, &w);
}

/* ---- folders ------------------------------------------------------------------------------- */

static void write_uri(struct json_writer *w, const char *path)
{
	char uri[3 * PATH_MAX + 8] = "file://", *to = uri + strlen(uri);

	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;

		if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		    strchr("/-._~", c))
			*to++ = (char)c;
		else
			to += sprintf(to, "%%%02X", c);
	}
	*to = '\0';
	json_write_text(w, uri);
}

static void answer_roots(struct peer *p, struct mcp_question *q)
{
	autobuf struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);
	char path[PATH_MAX];

	json_write_object(&w);
	json_write_key(&w, "roots");
	json_write_array(&w);
	for (size_t i = 0; i < p->o->roots.n; i++) {
		if (!realpath(p->o->roots.p[i], path))
			continue;
		json_write_object(&w);
		json_write_key(&w, "uri");
		write_uri(&w, path);
		json_write_key(&w, "name");
		json_write_text(&w, path[1] ? strrchr(path, '/') + 1 : path);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	ask_answer(p, q, &w);
	peer_settle(p);
}

/* ---- forms by --answer --------------------------------------------------------------------- */

/* Members of the first that the second lacks, then those of the second. */
static void write_merged(struct json_writer *w, const struct json_val *first,
			 const struct json_val *second)
{
	struct json_iter a = json_iter(first), b = json_iter(second);

	json_write_object(w);
	while (json_next(&a)) {
		if (json_get_str(second, a.key))
			continue;
		json_write_key_str(w, a.key);
		json_write_val(w, a.val);
	}
	while (json_next(&b)) {
		json_write_key_str(w, b.key);
		json_write_val(w, b.val);
	}
	json_write_object_end(w);
}

static struct json_doc *answers_of(struct peer *p, const struct json_val *params, struct err *e)
{
	const struct json_val *schema = json_get(params, "requestedSchema");
	autobuf struct buf said = BUF_INIT(ANSWER_MAX), defaults = BUF_INIT(ANSWER_MAX);
	autobuf struct buf both = BUF_INIT(ANSWER_MAX);
	AUTO(json_free) struct json_doc *first = NULL;
	AUTO(json_free) struct json_doc *second = NULL;
	struct json_writer w = json_writer(&both);

	if (args_build_known(p->answers, schema, &said, e) < 0 ||
	    mcp_form_defaults(params, &defaults, e) < 0)
		return NULL;
	first = json_parse(buf_str(&defaults), NULL, e);
	second = first ? json_parse(buf_str(&said), NULL, e) : NULL;
	if (!second)
		return NULL;
	write_merged(&w, json_root(first), json_root(second));
	return json_write_done(&w, e) < 0 ? NULL : json_parse(buf_str(&both), NULL, e);
}

static void answer_form(struct peer *p, struct mcp_question *q)
{
	autobuf struct buf b = BUF_INIT(ANSWER_MAX);
	AUTO(json_free) struct json_doc *content = NULL;
	struct json_writer w = json_writer(&b);
	struct err e = ERR_INIT;

	content = answers_of(p, mcp_question_params(q), &e);
	if (!content) {
		note(p, "the server's form was declined", &e);
		peer_answer_action(p, q, "decline");
		return;
	}
	json_write_object(&w);
	json_write_key(&w, "action");
	json_write_text(&w, "accept");
	json_write_key(&w, "content");
	json_write_val(&w, json_root(content));
	json_write_object_end(&w);
	ask_answer(p, q, &w);
}

/* ---- people -------------------------------------------------------------------------------- */

void peer_ask_head(struct peer *p, const struct mcp_question *q)
{
	const struct json_val *params = mcp_question_params(q);
	struct str name = json_str(json_get(peer_info(p), "name"));

	fprintf(peer_err(p), "\nThe server%s", name.n > 0 ? " " : "");
	safe_short(stderr, name, 100);
	fputs(" asks:\n", stderr);
	safe_text(stderr, json_str(json_get(params, "message")), 2);
}

static bool has_people(const struct peer *p)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static void decline(struct peer *p, struct mcp_question *q)
{
	bool url = mcp_question_kind(q) == MCP_ASK_URL;

	peer_ask_head(p, q);
	if (url) {
		fputs("  ", stderr);
		safe_puts(stderr, json_str(json_get(mcp_question_params(q), "url")));
	}
	fprintf(stderr, "Declined: there is no terminal%s.\n", url ? "" : ", and no --answer");
	peer_answer_action(p, q, "decline");
}

static void on_bytes(void *owner, struct str s)
{
	struct peer *p = owner;

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] != '\n') {
			if (p->line_n < sizeof(p->line))
				p->line[p->line_n++] = s.p[i];
			continue;
		}
		if (p->form)
			peer_form_line(p->form, (struct str){ p->line, p->line_n });
		p->line_n = 0;
	}
	if (p->tty)
		loop_reader_next(p->tty);
}

static void ask_on_end(void *owner, const struct err *e)
{
	struct peer *p = owner;

	/* A terminal may have more input, for the next question. */
	loop_reader_close(take_ptr(p->tty), NULL);
	p->line_n = 0;
	if (p->form)
		peer_form_end(p->form);
}

static const struct loop_reader_events tty_events = { on_bytes, ask_on_end };

static int open_tty(struct peer *p, struct err *e)
{
	int fd;

	if (p->tty)
		return 0;
	fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (fd < 0)
		return err_sys(e, errno, "open the terminal");
	p->tty = loop_reader_new(&p->loop, fd, &tty_events, p, e);
	if (!p->tty)
		return -1;
	loop_reader_next(p->tty);
	return 0;
}

static void remove_question(struct peer *p, const struct mcp_question *q)
{
	for (size_t i = 0; i < p->questions_n; i++) {
		if (p->questions[i] != q)
			continue;
		memmove(&p->questions[i], &p->questions[i + 1],
			(p->questions_n - i - 1) * sizeof(p->questions[0]));
		p->questions_n--;
		return;
	}
}

/* One at a time. */
static void ask_first(struct peer *p)
{
	struct err e = ERR_INIT;

	while (!p->form && p->questions_n > 0 && !p->ending) {
		struct mcp_question *q = p->questions[0];

		if (open_tty(p, &e) == 0)
			p->form = peer_form_start(p, q, &e);
		if (p->form)
			return;
		remove_question(p, q);
		decline(p, q);
	}
}

void peer_ask_next(struct peer *p)
{
	peer_form_free(take_ptr(p->form));
	if (p->questions_n == 0)
		return;
	memmove(&p->questions[0], &p->questions[1], (p->questions_n - 1) * sizeof(p->questions[0]));
	p->questions_n--;
	ask_first(p);
}

void peer_asked(struct peer *p, struct mcp_question *q)
{
	enum mcp_ask_kind kind = mcp_question_kind(q);

	if (p->ending)
		return;
	if (kind == MCP_ASK_ROOTS) {
		answer_roots(p, q);
	} else if (kind == MCP_ASK_SAMPLING) {
		mcp_question_refuse(q, "this client offers no sampling");
	} else if (kind == MCP_ASK_FORM && p->o->answers.n > 0) {
		answer_form(p, q);
	} else if (!has_people(p) || p->questions_n == PEER_QUESTIONS) {
		decline(p, q);
	} else {
		p->questions[p->questions_n++] = q;
		ask_first(p);
	}
}

void peer_withdrawn(struct peer *p, struct mcp_question *q)
{
	bool shown = p->form && p->questions_n > 0 && p->questions[0] == q;

	remove_question(p, q);
	if (!shown)
		return;
	peer_form_free(take_ptr(p->form));
	fputs("\nThe server has withdrawn the question.\n", peer_err(p));
	ask_first(p);
}

void peer_ask_stop(struct peer *p)
{
	peer_form_free(take_ptr(p->form));
	p->questions_n = 0;
	if (p->tty)
		loop_reader_close(take_ptr(p->tty), NULL);
}
