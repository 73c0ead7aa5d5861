#include "cli/common/env.h"

#include <stdlib.h>

#include "cli/common/file.h"
#include "cli/common/git.h"
#include "json/document/utf8.h"

enum { FILE_MAX = 1 << 20, ARENA_MAX = 64 << 20 };

/* Over an earlier one of the same name. */
static int env_put(struct env_words *l, struct env_word word, struct err *e)
{
	size_t i = 0;

	while (i < l->n && !str_eq(l->all[i].name, word.name))
		i++;
	if (i == ENV_VARS_MAX)
		return err_set(e, ERR_INVALID, "at most %d variables can be set", ENV_VARS_MAX);
	l->all[i] = word;
	l->n += i == l->n;
	return 0;
}

/* text: NAME=VALUE or NAME, with a NUL behind it. */
static int env_add(struct env_words *l, const char *text, struct err *e)
{
	size_t n = strcspn(text, "=");
	const char *value = text[n] ? text + n + 1 : getenv(text);

	if (!value)
		return 0;
	if (!text[n])
		text = arena_printf(l->arena, e, "%s=%s", text, value);
	return text ? env_put(l, (struct env_word){ { text, n }, str_of(value), str_of(text) }, e)
		    : -1;
}

static int env_add_line(struct env_words *l, char *line, struct err *e)
{
	size_t n;

	line += strspn(line, " \t\v\f\r");
	if (!*line || *line == '#')
		return 0;
	n = strcspn(line, "=");
	if (n == 0)
		return err_set(e, ERR_INVALID, "a line without a name: '%.40s'", line);
	if (strcspn(line, " \t\v\f") < n)
		return err_set(e, ERR_INVALID, "a name with a space in it: '%.*s'",
			       (int)(n < 40 ? n : 40), line);
	return env_add(l, line, e);
}

static int env_add_file(struct env_words *l, const char *path, struct err *e)
{
	autobuf struct buf text = BUF_INIT(FILE_MAX);
	unsigned number = 1;
	char *at;

	if (file_read(path, &text, e) < 0)
		return -1;
	if (!utf8_valid(buf_str(&text)) || memchr(buf_str(&text).p, '\0', text.n))
		return err_set(e, ERR_INVALID, "%.120s is not UTF-8 text", path);
	at = arena_dup(l->arena, buf_str(&text), e);
	if (!at)
		return -1;
	if (str_starts(buf_str(&text), "\xef\xbb\xbf"))
		at += 3; /* the mark that some editors put first */
	for (char *end; *at; at = end, number++) {
		char *stop = strchrnul(at, '\n');

		end = stop + (*stop != '\0');
		*stop = '\0';
		if (stop > at && stop[-1] == '\r')
			stop[-1] = '\0';
		if (env_add_line(l, at, e) < 0)
			return err_wrap(e, "%.120s, line %u", path, number);
	}
	return 0;
}

/* With the name and address that git of the host takes here for a commit. */
static int env_add_git(struct env_words *l, struct err *e)
{
	static const struct {
		const char *key, *names[2];
	} rows[] = {
		{ "user.name", { "GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME" } },
		{ "user.email", { "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL" } },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char said[GIT_SETTING_MAX];
		bool has = git_setting(rows[i].key, said);

		for (size_t k = 0; k < ARRAY_LEN(rows[i].names); k++) {
			const char *own = getenv(rows[i].names[k]), *text;

			if (!own && !has)
				continue;
			text = arena_printf(l->arena, e, "%s=%s", rows[i].names[k],
					    own ? own : said);
			if (!text || env_add(l, text, e) < 0)
				return -1;
		}
	}
	return 0;
}

int env_read(struct env_words *l, const struct env_options *o, bool tty, struct err *e)
{
	l->n = 0;
	l->arena = arena_new(ARENA_MAX);
	if (!l->arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	if ((tty && env_add(l, "COLORTERM", e) < 0) || (o->git && env_add_git(l, e) < 0))
		return -1;
	for (size_t i = 0; i < o->files.n; i++) {
		if (env_add_file(l, o->files.p[i], e) < 0)
			return err_wrap(e, "--env-file");
	}
	for (size_t i = 0; i < o->words.n; i++) {
		if (strcspn(o->words.p[i], "=") == 0)
			return err_set(e, ERR_INVALID, "-e takes NAME=VALUE or NAME, not '%.80s'",
				       o->words.p[i]);
		if (env_add(l, o->words.p[i], e) < 0)
			return -1;
	}
	return 0;
}

void env_fini(struct env_words *l)
{
	arena_free(take_ptr(l->arena));
}
