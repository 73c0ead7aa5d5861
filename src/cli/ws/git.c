/*
 * Revisions as commits of a repository that the operator names. The archive that the hub sends
 * becomes a stream for `git fast-import`, which writes objects and one branch and touches neither
 * the index nor files (cli/common/git.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/archive/tar.h"
#include "cli/common/file.h"
#include "cli/common/git.h"
#include "cli/common/safe.h"
#include "cli/ws/git.h"

#define BRANCH "refs/heads/holt/"
enum {
	ANSWER_MAX = 1 << 20, /* bytes that git prints */
	PAGE = 1000, /* revisions */
	PAGES_MAX = 100,
};

struct git_writer {
	const char *name;
	struct tar_reader reader;
	int to; /* the standard input of git */
	struct buf text;
	bool taking; /* content is wanted */
	bool ended;
};

/* ---- git ------------------------------------------------------------------------------------- */

/* The commit that the branch has; "" where there is no such branch. */
static int git_tip(const char *repository, const char *branch, char ret[COMMIT_HEX_MAX + 1],
		   struct err *e)
{
	const char *const words[] = { "for-each-ref", "--format=%(objectname)", "--", branch,
				      NULL };
	autobuf struct buf said = BUF_INIT(ANSWER_MAX);

	if (git_ask(repository, true, words, &said, e) < 0)
		return -1;
	snprintf(ret, COMMIT_HEX_MAX + 1, "%.*s", STR_ARG(buf_str(&said)));
	ret[strspn(ret, "0123456789abcdef")] = '\0';
	return 0;
}

/* The revision that a commit is of, in its last line, as messages are anybody's; "": of none. */
static int git_revision(const char *repository, const char *commit, char ret[HASH_HEX + 1],
			struct err *e)
{
	static const struct str word = STR_LIT("\nHolt-Revision: ");
	const char *const words[] = { "cat-file", "commit", commit, NULL };
	autobuf struct buf said = BUF_INIT(ANSWER_MAX);
	size_t tail = word.n + HASH_HEX + 1;

	ret[0] = '\0';
	if (!*commit)
		return 0;
	if (git_ask(repository, true, words, &said, e) < 0)
		return -1;
	if (said.n > tail && memcmp(said.p + said.n - tail, word.p, word.n) == 0)
		snprintf(ret, HASH_HEX + 1, "%.*s", HASH_HEX, said.p + said.n - HASH_HEX - 1);
	return 0;
}

/* ---- the stream ------------------------------------------------------------------------------ */

static int git_send(struct git_writer *g, struct str bytes, struct err *e)
{
	return file_write_fd(g->to, "git", bytes, e);
}

static int git_flush(struct git_writer *g, struct err *e)
{
	int result = git_send(g, buf_str(&g->text), e);

	g->text.n = 0;
	return result;
}

/* As a C string, which may have any byte. */
static int put_path(struct git_writer *g, const char *path, struct err *e)
{
	if (buf_add(&g->text, "\"", 1, e) < 0)
		return -1;
	for (; *path; path++) {
		unsigned char c = (unsigned char)*path;
		bool plain = c >= ' ' && c < 127 && c != '"' && c != '\\';

		if ((plain ? buf_add(&g->text, path, 1, e) : buf_addf(&g->text, e, "\\%03o", c)) <
		    0)
			return -1;
	}
	return buf_add(&g->text, "\"\n", 2, e);
}

/* git refuses to check these out, for good reason: it would take such a folder for its own. */
static bool is_git_part(struct str part)
{
	static const char *const names[] = { ".git", "git~1" };
	char text[16];

	while (part.n && (part.p[part.n - 1] == '.' || part.p[part.n - 1] == ' '))
		part.n--;
	if (part.n >= sizeof(text) || memchr(part.p, '\0', part.n))
		return false;
	snprintf(text, sizeof(text), "%.*s", STR_ARG(part));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcasecmp(text, names[i]) == 0)
			return true;
	}
	return false;
}

bool ws_has_git_part(const char *path)
{
	for (;;) {
		size_t n = strcspn(path, "/");

		if (is_git_part((struct str){ path, n }))
			return true;
		if (!path[n])
			return false;
		path += n + 1;
	}
}

static int put_entry(struct git_writer *g, struct err *e)
{
	const struct tar_entry *t = &g->reader.entry;
	char path[TAR_PATH_MAX];

	snprintf(path, sizeof(path), "%s", t->path);
	g->taking = false;
	if (!tar_path_clean(path))
		return err_set(e, ERR_TRANSPORT, "the hub's archive has a path that leads upwards");
	/* git has no directories of their own */
	if ((t->type != TAR_FILE && t->type != TAR_SYMLINK) || ws_has_git_part(path))
		return 0;
	if (buf_addf(&g->text, e, "M %s inline ",
		     t->type == TAR_SYMLINK ? "120000"
		     : t->mode & 0100	    ? "100755"
					    : "100644") < 0 ||
	    put_path(g, path, e) < 0)
		return -1;
	if (t->type == TAR_SYMLINK)
		return buf_addf(&g->text, e, "data %zu\n%s\n", strlen(t->link), t->link) < 0
			     ? -1
			     : git_flush(g, e);
	g->taking = true;
	return buf_addf(&g->text, e, "data %" PRIu64 "\n", t->size) < 0 ? -1 : git_flush(g, e);
}

static int git_take(void *arg, struct str bytes, struct err *e)
{
	struct git_writer *g = arg;

	for (;;) {
		switch (tar_read(&g->reader, &bytes.p, &bytes.n)) {
		case TAR_MORE:
			return 0;
		case TAR_ENTRY:
			if (put_entry(g, e) < 0)
				return -1;
			break;
		case TAR_CONTENT:
			if (g->taking &&
			    git_send(g, (struct str){ g->reader.content, g->reader.content_n }, e) <
				    0)
				return -1;
			break;
		case TAR_ENTRY_END:
			if (g->taking && git_send(g, STR_LIT("\n"), e) < 0)
				return -1;
			break;
		case TAR_END:
			g->ended = true;
			break;
		case TAR_PASSED:
		case TAR_BAD:
			return err_set(e, ERR_TRANSPORT, "the hub's archive: %s",
				       tar_why_text(g->reader.why));
		}
	}
}

/* ---- the commit ------------------------------------------------------------------------------ */

/* The next page of the log. *cursor: where it begins, from empty on; then, in *ret, where the next
 * one does, or empty. */
static int log_page(struct hub_link *l, const char *name, struct str *cursor, struct json_doc **ret,
		    struct err *e)
{
	char path[WS_PATH_MAX], more[80];

	snprintf(more, sizeof(more), "/log?limit=%d%s%.*s", PAGE, cursor->n ? "&cursor=" : "",
		 STR_CUT(*cursor, 24));
	json_free(take_ptr(*ret));
	if (hub_ask_path(&workspaces, path, sizeof(path), name, more, e) < 0 ||
	    hub_link_ask(l, "GET", path, STR_NONE, ret, e) < 0)
		return -1;
	*cursor = json_str(json_get(json_root(*ret), "next_cursor"));
	return 0;
}

static int git_find_revision(struct hub_link *l, const char *name, const char *digits,
			     struct json_doc **ret, const struct json_val **ret_row, struct err *e)
{
	struct str cursor = STR_NONE;

	do {
		struct json_iter it;

		if (log_page(l, name, &cursor, ret, e) < 0)
			return -1;
		it = json_iter(json_get(json_root(*ret), "revisions"));
		while (json_next(&it)) {
			*ret_row = it.val;
			if (!digits || str_starts(json_str(json_get(it.val, "revision")), digits))
				return 0;
		}
	} while (cursor.n);
	return err_set(e, ERR_WORKSPACE_NOT_FOUND, "workspace %.80s has no revision '%.80s'", name,
		       digits);
}

int ws_find_revision(struct hub_link *l, const char *name, const char *digits,
		     char ret[HASH_HEX + 1], struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	const struct json_val *row = NULL;

	if (git_find_revision(l, name, digits, &doc, &row, e) < 0)
		return -1;
	snprintf(ret, HASH_HEX + 1, "%.*s", STR_CUT(json_str(json_get(row, "revision")), HASH_HEX));
	return 0;
}

/* The revisions that become commits, the newest first. */
struct history {
	struct json_doc *pages[PAGES_MAX];
	size_t n_pages;
	const struct json_val **rows; /* owned; of the pages */
	size_t n;
};

/* Adds rows until the revision `known`. 1: it was found. */
static int history_add(struct history *h, const struct json_val *page, const char *known,
		       struct err *e)
{
	const struct json_val **rows = realloc(h->rows, (h->n + PAGE) * sizeof(*rows));
	struct json_iter it = json_iter(json_get(page, "revisions"));

	if (!rows)
		return err_set(e, ERR_LIMIT, "out of memory");
	h->rows = rows;
	for (size_t i = 0; i < PAGE && json_next(&it); i++) {
		if (str_is(json_str(json_get(it.val, "revision")), known))
			return 1;
		h->rows[h->n++] = it.val;
	}
	return 0;
}

/* Those behind the revision `known`; all, where there is no such one. */
static int history_read(struct history *h, struct hub_link *l, const char *name, const char *known,
			struct err *e)
{
	struct str cursor = STR_NONE;
	int found;

	do {
		struct json_doc **page = &h->pages[h->n_pages];

		if (h->n_pages == PAGES_MAX)
			return err_set(e, ERR_LIMIT, "at most %d revisions are exported at once",
				       PAGES_MAX * PAGE);
		if (log_page(l, name, &cursor, page, e) < 0)
			return -1;
		h->n_pages++;
		found = history_add(h, json_root(*page), known, e);
	} while (found == 0 && cursor.n);
	return found < 0 ? -1 : 0;
}

/* Seconds since 1970 of RFC 3339 in UTC. */
static int64_t seconds_of(struct str when)
{
	struct tm tm = { .tm_year = 0 };
	char text[32];

	snprintf(text, sizeof(text), "%.*s", STR_CUT(when, 31));
	return strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) ? timegm(&tm) : 0;
}

/* parent: "": what the branch has. */
static int put_commit(struct git_writer *g, const struct json_val *row, const char *parent,
		      struct err *e)
{
	struct str message = json_str(json_get(row, "message"));
	struct str revision = json_str(json_get(row, "revision"));
	autobuf struct buf text = BUF_INIT(16 << 10);

	if (!message.n)
		message = STR_LIT("Revision of a workspace");
	if (buf_addf(&text, e, "%.*s\n\nHolt-Workspace: %s\nHolt-Revision: %.*s\n",
		     STR_ARG(message), g->name, STR_ARG(revision)) < 0 ||
	    buf_addf(&g->text, e,
		     "commit " BRANCH "%s\ncommitter Holt <holt@localhost> %" PRId64 " +0000\n"
		     "data %zu\n%s",
		     g->name, seconds_of(json_str(json_get(row, "created_at"))), text.n,
		     buf_str(&text).p) < 0)
		return -1;
	if (*parent && buf_addf(&g->text, e, "from %s\n", parent) < 0)
		return -1;
	return buf_addf(&g->text, e, "deleteall\n") < 0 ? -1 : git_flush(g, e);
}

static int git_stream(struct hub_link *l, struct git_writer *g, const struct json_val *row,
		      const char *parent, struct err *e)
{
	char path[WS_PATH_MAX], id[HASH_HEX + 1];

	tar_reader_init(&g->reader);
	g->ended = false;
	snprintf(id, sizeof(id), "%.*s", STR_CUT(json_str(json_get(row, "revision")), HASH_HEX));
	if (ws_export_path(path, g->name, id, false, e) < 0 || put_commit(g, row, parent, e) < 0 ||
	    hub_link_download(l, path, git_take, g, e) < 0)
		return -1;
	return g->ended ? 0 : err_set(e, ERR_TRANSPORT, "the hub's archive has no end");
}

static int git_stream_all(struct hub_link *l, struct git_writer *g, const struct history *h,
			  const char *parent, struct err *e)
{
	if (git_send(g, STR_LIT("feature done\n"), e) < 0)
		return -1;
	for (size_t i = h->n; i > 0; i--) {
		if (git_stream(l, g, h->rows[i - 1], i == h->n ? parent : "", e) < 0)
			return -1;
	}
	return git_send(g, STR_LIT("done\n"), e);
}

/* Without "done" at its end git makes nothing of the stream. */
static int git_import(struct hub_link *l, const char *repository, struct git_writer *g,
		      const struct history *h, const char *parent, struct err *e)
{
	const char *const words[] = { "fast-import", "--quiet", "--done", "--date-format=raw",
				      NULL };
	struct err ignored = ERR_INIT;
	int ends[2], result;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	pid = git_start(repository, true, words, ends[0], STDERR_FILENO, e);
	close(ends[0]);
	g->to = ends[1];
	result = pid < 0 ? -1 : git_stream_all(l, g, h, parent, e);
	close(ends[1]);
	if (pid > 0 && git_wait(pid, 0, result < 0 ? &ignored : e) < 0)
		return -1;
	return result;
}

/* Chooses what to commit on top of `parent`: the one revision, or all that it lacks. */
static int git_choose(struct hub_link *l, const struct ws_git *o, const char *parent,
		      struct history *ret, struct err *e)
{
	char known[HASH_HEX + 1];

	if (o->history)
		return git_revision(o->repository, parent, known, e) < 0
			     ? -1
			     : history_read(ret, l, o->name, known, e);
	ret->rows = calloc(1, sizeof(*ret->rows));
	if (!ret->rows)
		return err_set(e, ERR_LIMIT, "out of memory");
	ret->n = ret->n_pages = 1;
	return git_find_revision(l, o->name, o->revision, &ret->pages[0], &ret->rows[0], e);
}

/* tip: the newest commit of the branch then. */
static int git_export(struct hub_link *l, const struct ws_git *o, struct history *h,
		      char tip[COMMIT_HEX_MAX + 1], struct err *e)
{
	struct git_writer g = { .name = o->name, .to = -1, .text = BUF_INIT(64 << 10) };
	char branch[256];
	int result = 0;

	if (snprintf(branch, sizeof(branch), BRANCH "%s", o->name) >= (int)sizeof(branch))
		return err_set(e, ERR_INVALID, "the name of the branch is too long");
	if (git_tip(o->repository, branch, tip, e) < 0 || git_choose(l, o, tip, h, e) < 0)
		return -1;
	if (h->n)
		result = git_import(l, o->repository, &g, h, tip, e);
	buf_fini(&g.text);
	return result < 0 ? -1 : git_tip(o->repository, branch, tip, e);
}

int ws_git_take(struct hub_link *l, const struct ws_git *o, char ret[COMMIT_HEX_MAX + 1],
		struct err *e)
{
	struct history h = { .n = 0 };
	int result = git_export(l, o, &h, ret, e);

	for (size_t i = 0; i < h.n_pages; i++)
		json_free(h.pages[i]);
	free(h.rows);
	return result;
}

int ws_export_git(const struct ws_git *o, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	char tip[COMMIT_HEX_MAX + 1];

	if (o->history && o->revision)
		return err_set(e, ERR_INVALID, "--history has every revision: leave out -r");
	signal(SIGPIPE, SIG_IGN);
	l = hub_link_open(e);
	if (!l || ws_git_take(l, o, tip, e) < 0)
		return -1;
	puts(tip);
	return 0;
}
