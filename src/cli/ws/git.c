/*
 * A revision as a commit of a repository that the operator names. The archive that the hub sends
 * becomes a stream for `git fast-import`, which writes objects and one branch and touches neither
 * the index nor files. Nothing of the repository's configuration may run a program: hooks, file
 * system monitors and garbage collection are off, and the environment is git's alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/archive/tar.h"
#include "cli/common/file.h"
#include "cli/common/safe.h"
#include "cli/ws/ws.h"

#define BRANCH "refs/heads/holt/"
enum { COMMIT_HEX_MAX = 64 };

struct git_writer {
	const char *name;
	struct tar_reader reader;
	int to; /* the standard input of git */
	struct buf text;
	bool taking; /* content is wanted */
	bool ended;
};

/* ---- git ------------------------------------------------------------------------------------- */

static const char *const quiet[] = {
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0",
	"-c", "maintenance.auto=false",	  "-c", "core.pager=cat",
};
enum { WORDS_MAX = 6 };

/* Starts `git -C repository WORD...`. fds: its standard input and output. */
static pid_t git_start(const char *repository, const char *const *words, const int fds[2],
		       struct err *e)
{
	char *argv[ARRAY_LEN(quiet) + WORDS_MAX + 4] = { (char *)"git", (char *)"-C",
							 (char *)repository };
	char path[4096];
	char *env[] = { path,
			(char *)"GIT_CONFIG_NOSYSTEM=1",
			(char *)"GIT_CONFIG_GLOBAL=/dev/null",
			(char *)"GIT_TERMINAL_PROMPT=0",
			(char *)"GIT_OPTIONAL_LOCKS=0",
			(char *)"HOME=/nonexistent",
			(char *)"LC_ALL=C",
			NULL };
	posix_spawn_file_actions_t actions;
	const char *said = getenv("PATH");
	size_t n = 3;
	pid_t pid;
	int errnum;

	snprintf(path, sizeof(path), "PATH=%s", said ? said : "/usr/bin:/bin");
	for (size_t i = 0; i < ARRAY_LEN(quiet); i++)
		argv[n++] = (char *)quiet[i];
	for (; *words; words++)
		argv[n++] = (char *)*words;
	errnum = posix_spawn_file_actions_init(&actions);
	if (errnum)
		return err_sys(e, errnum, "start git");
	posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	errnum = posix_spawnp(&pid, "git", &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	return errnum ? err_sys(e, errnum, "start git") : pid;
}

static int git_wait(pid_t pid, struct err *e)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return err_sys(e, errno, "wait for git");
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0
		     ? 0
		     : err_set(e, ERR_INVALID, "git failed; what it printed says why");
}

/* The commit that the branch has; "" where there is no such branch. */
static int git_tip(const char *repository, const char *branch, char ret[COMMIT_HEX_MAX + 2],
		   struct err *e)
{
	const char *const words[] = { "for-each-ref", "--format=%(objectname)", "--", branch,
				      NULL };
	autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int ends[2];
	size_t n = 0;
	ssize_t got = 1;
	pid_t pid;

	if (null < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	pid = git_start(repository, words, (const int[]){ null, ends[1] }, e);
	close(ends[1]);
	while (pid > 0 && n < COMMIT_HEX_MAX + 1 && got > 0) {
		got = read(ends[0], ret + n, COMMIT_HEX_MAX + 1 - n);
		n += got > 0 ? (size_t)got : 0;
	}
	close(ends[0]);
	ret[n] = '\0';
	ret[strspn(ret, "0123456789abcdef")] = '\0';
	return pid < 0 ? -1 : git_wait(pid, e);
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

int ws_find_revision(struct hub_link *l, const char *name, const char *digits,
		     struct json_doc **ret, const struct json_val **ret_row, struct err *e)
{
	char path[WS_PATH_MAX], more[64] = "/log?limit=1000";
	struct str cursor;

	do {
		struct json_iter it;

		json_free(take_ptr(*ret));
		if (ws_path(path, name, more, e) < 0 ||
		    hub_link_ask(l, "GET", path, STR_NONE, ret, e) < 0)
			return -1;
		it = json_iter(json_get(json_root(*ret), "revisions"));
		while (json_next(&it)) {
			*ret_row = it.val;
			if (!digits || str_starts(json_str(json_get(it.val, "revision")), digits))
				return 0;
		}
		cursor = json_str(json_get(json_root(*ret), "next_cursor"));
		snprintf(more, sizeof(more), "/log?limit=1000&cursor=%.*s", STR_CUT(cursor, 24));
	} while (cursor.p);
	return err_set(e, ERR_WORKSPACE_NOT_FOUND, "workspace %.80s has no revision '%.80s'", name,
		       digits);
}

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
		     "feature done\ncommit " BRANCH "%s\ncommitter Holt <holt@localhost> now\n"
		     "data %zu\n%s",
		     g->name, text.n, buf_str(&text).p) < 0)
		return -1;
	if (*parent && buf_addf(&g->text, e, "from %s\n", parent) < 0)
		return -1;
	return buf_addf(&g->text, e, "deleteall\n") < 0 ? -1 : git_flush(g, e);
}

static int git_stream(struct hub_link *l, struct git_writer *g, const struct json_val *row,
		      const char *parent, struct err *e)
{
	char path[WS_PATH_MAX], id[COMMIT_HEX_MAX + 1];

	snprintf(id, sizeof(id), "%.*s", STR_CUT(json_str(json_get(row, "revision")), 64));
	if (ws_export_path(path, g->name, id, e) < 0 || put_commit(g, row, parent, e) < 0 ||
	    hub_link_download(l, path, git_take, g, e) < 0)
		return -1;
	if (!g->ended)
		return err_set(e, ERR_TRANSPORT, "the hub's archive has no end");
	return git_send(g, STR_LIT("done\n"), e);
}

/* Without "done" at its end git makes nothing of the stream. */
static int git_import(struct hub_link *l, const char *repository, struct git_writer *g,
		      const struct json_val *row, const char *parent, struct err *e)
{
	const char *const words[] = { "fast-import", "--quiet", "--done", "--date-format=now",
				      NULL };
	struct err ignored = ERR_INIT;
	int ends[2], result;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	pid = git_start(repository, words, (const int[]){ ends[0], STDERR_FILENO }, e);
	close(ends[0]);
	g->to = ends[1];
	result = pid < 0 ? -1 : git_stream(l, g, row, parent, e);
	close(ends[1]);
	if (pid > 0 && git_wait(pid, result < 0 ? &ignored : e) < 0)
		return -1;
	return result;
}

int ws_export_git(const char *name, const char *revision, const char *repository, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	struct git_writer g = { .name = name, .to = -1, .text = BUF_INIT(64 << 10) };
	const struct json_val *row = NULL;
	char parent[COMMIT_HEX_MAX + 2], branch[256];
	int result;

	signal(SIGPIPE, SIG_IGN);
	tar_reader_init(&g.reader);
	l = hub_link_open(e);
	if (!l || ws_find_revision(l, name, revision, &doc, &row, e) < 0)
		return -1;
	if (snprintf(branch, sizeof(branch), BRANCH "%s", name) >= (int)sizeof(branch))
		return err_set(e, ERR_INVALID, "the name of the branch is too long");
	result = git_tip(repository, branch, parent, e) < 0
		       ? -1
		       : git_import(l, repository, &g, row, parent, e);
	buf_fini(&g.text);
	if (result < 0 || git_tip(repository, branch, parent, e) < 0)
		return -1;
	puts(parent);
	return 0;
}
