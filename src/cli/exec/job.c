#include "cli/exec/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base64.h"
#include "cli/common/file.h"
#include "cli/common/safe.h"

enum { LIMIT = 1 << 20, CHUNK_MAX = 4 << 20 };

int job_path(char ret[JOB_WORDS_MAX], const char *name, const char *exec, const char *more,
	     struct err *e)
{
	static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_-";
	char words[JOB_WORDS_MAX];

	if (!*exec || exec[strspn(exec, chars)] ||
	    snprintf(words, sizeof(words), "/execs/%s%s", exec, more) >= (int)sizeof(words))
		return err_set(e, ERR_PROCESS_NOT_FOUND, "no exec can be called \"%.80s\"", exec);
	return hub_link_path(ret, JOB_WORDS_MAX, name, words, e);
}

int job_choose(struct hub_link *l, const char *name, const char *said, char ret[JOB_ID_MAX + 1],
	       struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_iter it;
	struct str id;
	char path[JOB_WORDS_MAX];

	if (said) {
		if (snprintf(ret, JOB_ID_MAX + 1, "%s", said) <= JOB_ID_MAX)
			return 0;
		return err_set(e, ERR_PROCESS_NOT_FOUND, "no exec can be called \"%.80s\"", said);
	}
	if (hub_link_path(path, sizeof(path), name, "/execs", e) < 0 ||
	    hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	it = json_iter(json_root(doc));
	id = json_next(&it) ? json_str(json_get(it.val, "exec_id")) : STR_NONE;
	if (id.n == 0 || id.n > JOB_ID_MAX)
		return err_set(e, ERR_PROCESS_NOT_FOUND, "sandbox %.80s has no execs yet", name);
	snprintf(ret, JOB_ID_MAX + 1, "%.*s", STR_ARG(id));
	return 0;
}

int job_offset(const char *text, uint64_t *ret, struct err *e)
{
	char *end = NULL;

	*ret = 0;
	if (!text)
		return 0;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		return err_set(e, ERR_INVALID, "an offset is a whole number, not '%.40s'", text);
	return 0;
}

int job_seen(struct hub_link *l, const char *name, const char *exec, uint64_t *ret, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[JOB_WORDS_MAX];

	*ret = 0;
	if (job_path(path, name, exec, "", e) < 0 ||
	    hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (json_bool(json_get(json_root(doc), "tty")) &&
	    str_is(json_str(json_get(json_root(doc), "state")), "running"))
		json_uint64(json_get(json_root(doc), "next_offset"), ret);
	return 0;
}

/* ---- what is printed ----------------------------------------------------------------------- */

static int print_chunk(const struct json_val *chunk, struct err *e)
{
	autobuf struct buf bytes = BUF_INIT(CHUNK_MAX);
	bool out = str_is(json_str(json_get(chunk, "stream")), "stdout");

	if (base64_decode(&bytes, json_str(json_get(chunk, "data")), e) < 0)
		return -1;
	return file_write_fd(out ? STDOUT_FILENO : STDERR_FILENO,
			     out ? "standard output" : "standard error", buf_str(&bytes), e);
}

static void say_dropped(const struct json_val *bytes)
{
	uint64_t n = 0;

	if (json_uint64(bytes, &n) && n > 0)
		fprintf(stderr, "holt: %" PRIu64 " bytes of it are not kept any more\n", n);
}

static int query(char ret[JOB_WORDS_MAX], const struct job_look *k, const char *how, struct err *e)
{
	char more[JOB_WORDS_MAX];

	snprintf(more, sizeof(more), "/output?offset=%" PRIu64 "&stream=%s&%s", k->offset,
		 k->stream ? k->stream : "both", how);
	return job_path(ret, k->name, k->exec, more, e);
}

/* 1: there may be more. */
static int print_piece(struct hub_link *l, struct job_look *k, uint64_t until, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[JOB_WORDS_MAX], how[32];
	uint64_t before = k->offset;
	struct json_iter it;

	snprintf(how, sizeof(how), "limit=%d", LIMIT);
	if (query(path, k, how, e) < 0 || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	say_dropped(json_get(json_root(doc), "dropped_bytes"));
	it = json_iter(json_get(json_root(doc), "chunks"));
	while (json_next(&it)) {
		if (print_chunk(it.val, e) < 0)
			return -1;
	}
	if (!json_uint64(json_get(json_root(doc), "next_offset"), &k->offset))
		return err_set(e, ERR_TRANSPORT, "the hub sent something unknown");
	return k->offset > before && k->offset < until;
}

int job_print(struct hub_link *l, struct job_look *k, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[JOB_WORDS_MAX];
	uint64_t until = 0;
	int more;

	if (job_path(path, k->name, k->exec, "", e) < 0 ||
	    hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	json_uint64(json_get(json_root(doc), "next_offset"), &until);
	do {
		more = print_piece(l, k, until, e);
	} while (more > 0);
	return more;
}

/* ---- as it comes --------------------------------------------------------------------------- */

struct end {
	bool came;
	int64_t code; /* -1: it has none */
	struct err why;
};

static int job_take(void *arg, const struct json_val *line, struct err *e)
{
	struct end *end = arg;
	struct str kind = json_str(json_get(line, "kind"));

	if (str_is(kind, "chunk"))
		return print_chunk(line, e);
	if (str_is(kind, "dropped")) {
		say_dropped(json_get(line, "bytes"));
		return 0;
	}
	if (!str_is(kind, "exit"))
		return err_set(e, ERR_TRANSPORT, "the hub sent something unknown");
	end->came = true;
	if (!json_int64(json_get(line, "exit_code"), &end->code)) {
		bool lost = str_is(json_str(json_get(line, "state")), "lost");
		struct str why = json_str(json_get(line, "error"));

		end->code = -1;
		err_set(&end->why, lost ? ERR_GUEST : ERR_COMMAND_NOT_RUN, "%.*s",
			STR_CUT(why, 240));
	}
	return 0;
}

int job_follow(struct hub_link *l, const struct job_look *k, int64_t *ret_code, struct err *e)
{
	struct end end = { .code = -1 };
	char path[JOB_WORDS_MAX];

	if (query(path, k, "follow=true", e) < 0 || hub_link_follow(l, path, job_take, &end, e) < 0)
		return -1;
	if (!end.came)
		return err_set(e, ERR_TRANSPORT, "the hub did not say how it ended");
	if (end.code < 0) {
		*e = end.why;
		return -1;
	}
	*ret_code = end.code;
	return 0;
}
