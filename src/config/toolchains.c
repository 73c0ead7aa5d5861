#include "config/toolchains.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/programs.h"

enum {
	PARTS_MAX = 3,
	READ_MAX = 20, /* all that one home can have; a sandbox has VOLUMES_MAX */
	PATH_BYTES = 8192,
	CHOSEN_MAX = 64, /* characters of a version's name */
};

#define PYTHON "bin", "lib", "include"
#define JAVA ".sdkman/candidates/java/"
/* Of those that give the same, the first that is there counts. */
static const struct toolchain {
	const char *gives;
	const char *place; /* below the home; "*": one of several versions */
	const char *parts[PARTS_MAX]; /* of the place: what is given */
	const char *path; /* the part that is in PATH; ".": the place; NULL: none */
	/* A file below the home with the name of the version, or a link to it. Where it says
	 * nothing that is there, the newest counts; "system" is that of the host. */
	const char *chosen;
	bool only_chosen; /* without a choice the host's counts */
	const char *variable; /* that has the path of the place; NULL: none */
} toolchains[] = {
	/* CARGO_HOME stays the sandbox's own: cargo writes there, and finds credentials there. */
	{ "cargo", ".cargo", { "bin" }, "bin" },
	{ "rust", ".rustup", { "toolchains", "settings.toml" }, .variable = "RUSTUP_HOME" },
	{ "node", ".nvm/versions/node/*", { "bin", "lib" }, "bin", ".nvm/alias/default" },
	{ "node", ".local/share/fnm/node-versions/*/installation", { "bin", "lib" }, "bin" },
	{ "node", ".volta/tools/image/node/*", { "bin", "lib" }, "bin" },
	{ "node", ".local/share/mise/installs/node/*", { "bin", "lib" }, "bin" },
	{ "node", ".asdf/installs/nodejs/*", { "bin", "lib" }, "bin" },
	{ "npm", ".npm-global", { "bin", "lib" }, "bin" },
	{ "bun", ".bun", { "bin" }, "bin" },
	{ "deno", ".deno", { "bin" }, "bin" },
	{ "python", ".pyenv/versions/*", { PYTHON }, "bin", ".pyenv/version", true },
	/* These are found by the virtual environments that were made with them. */
	{ "python", ".local/share/mise/installs/python/*", { PYTHON } },
	{ "python", ".asdf/installs/python/*", { PYTHON } },
	{ "uv-python", ".local/share/uv/python/*", { PYTHON } },
	{ "uv", ".local/bin", { "uv", "uvx" }, "." },
	/* A Go finds the rest of itself from where its program is. */
	{ "go", "sdk/go*", { "." }, "bin" },
	{ "go", ".local/go", { "." }, "bin" },
	{ "go", ".local/share/mise/installs/go/*", { "." }, "bin" },
	{ "go", ".asdf/installs/golang/*/go", { "." }, "bin" },
	{ "go-programs", "go", { "bin" }, "bin" },
	{ "java", JAVA "*", { "." }, "bin", JAVA "current", false, "JAVA_HOME" },
};

struct toolchain_search {
	int home;
	char home_path[PATH_MAX];
	struct arena *a;
	struct str *read;
	size_t n_read;
	struct field_pair *env;
	size_t n_env;
	struct buf path; /* of PATH */
	const char *given[ARRAY_LEN(toolchains)];
	size_t n_given;
};

/* ---- where one is ---------------------------------------------------------------------------- */

/* Below the home, without any link in its path. */
static int toolchain_open(const struct toolchain_search *s, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, s->home, path, &how, sizeof(how));
}

static bool toolchain_is_there(const struct toolchain_search *s, const char *path)
{
	autoclose int fd = toolchain_open(s, path);

	return fd >= 0;
}

/* The name of the version that the user has chosen; "": none is known. A file's first line has it,
 * with or without a v, and maybe only the beginning of it. */
static void toolchain_chosen(const struct toolchain_search *s, const char *file,
			     char ret[CHOSEN_MAX])
{
	char text[PATH_MAX];
	ssize_t n = file ? readlinkat(s->home, file, text, sizeof(text) - 1) : -1;
	const char *name = text;

	*ret = '\0';
	if (file && n < 0) {
		autoclose int fd = openat(s->home, file,
					  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

		n = fd < 0 ? -1 : read(fd, text, CHOSEN_MAX - 1);
	}
	if (n <= 0)
		return;
	text[n] = '\0';
	text[strcspn(text, "\r\n \t")] = '\0';
	if (strrchr(text, '/'))
		name = strrchr(text, '/') + 1;
	name += *name == 'v';
	if (strlen(name) < CHOSEN_MAX)
		memcpy(ret, name, strlen(name) + 1);
}

/* Whether a version's name is what was chosen, or a later part of it: 20 means v20.11.1. */
static bool toolchain_is_chosen(const char *name, const char *chosen)
{
	size_t n = strlen(chosen);

	name += *name == 'v';
	return n && strncmp(name, chosen, n) == 0 && (!name[n] || name[n] == '.');
}

/* Of several versions the chosen one, else the newest. ret: relative to the home. */
static bool toolchain_version(const struct toolchain_search *s, const struct toolchain *t,
			      char ret[PATH_MAX])
{
	size_t home = strlen(s->home_path) + 1, before = strcspn(t->place, "*");
	char pattern[2 * PATH_MAX], chosen[CHOSEN_MAX];
	const char *best = NULL;
	bool is_best = false;
	glob_t g = { .gl_pathc = 0 };

	while (before && t->place[before - 1] != '/')
		before--;
	toolchain_chosen(s, t->chosen, chosen);
	if (strcmp(chosen, "system") == 0)
		return false;
	snprintf(pattern, sizeof(pattern), "%s/%s", s->home_path, t->place);
	if (glob(pattern, 0, NULL, &g) == 0) {
		for (size_t i = 0; i < g.gl_pathc; i++) {
			const char *path = g.gl_pathv[i] + home;
			bool is = toolchain_is_chosen(path + before, chosen);

			if ((is || !t->only_chosen) && strlen(path) < PATH_MAX &&
			    toolchain_is_there(s, path) &&
			    (!best || is > is_best ||
			     (is == is_best && strverscmp(path, best) > 0))) {
				best = path;
				is_best = is;
			}
		}
	}
	if (best)
		snprintf(ret, PATH_MAX, "%s", best);
	globfree(&g);
	return best;
}

static bool toolchain_find(const struct toolchain_search *s, const struct toolchain *t,
			   char ret[PATH_MAX])
{
	for (size_t i = 0; i < s->n_given; i++) {
		if (strcmp(s->given[i], t->gives) == 0)
			return false;
	}
	if (strchr(t->place, '*'))
		return toolchain_version(s, t, ret);
	snprintf(ret, PATH_MAX, "%s", t->place);
	return toolchain_is_there(s, ret);
}

/* ---- what is given --------------------------------------------------------------------------- */

static char *toolchain_name(const struct toolchain_search *s, const char *place, const char *part,
			    struct err *e)
{
	bool whole = strcmp(part, ".") == 0;

	return arena_printf(s->a, e, "%s/%s%s%s", s->home_path, place, whole ? "" : "/",
			    whole ? "" : part);
}

/* *ret: how many of its parts are there. */
static int toolchain_parts(struct toolchain_search *s, const struct toolchain *t, const char *place,
			   size_t *ret, struct err *e)
{
	*ret = 0;
	for (size_t i = 0; i < PARTS_MAX && t->parts[i] && s->n_read < READ_MAX; i++) {
		char below[PATH_MAX + 16];
		const char *path;

		snprintf(below, sizeof(below), "%s/%s", place, t->parts[i]);
		if (!toolchain_is_there(s, below))
			continue;
		path = toolchain_name(s, place, t->parts[i], e);
		if (!path)
			return -1;
		s->read[s->n_read++] = str_of(path);
		(*ret)++;
	}
	return 0;
}

static int toolchain_give(struct toolchain_search *s, const struct toolchain *t, const char *place,
			  struct err *e)
{
	const char *path;
	size_t n;

	if (toolchain_parts(s, t, place, &n, e) < 0)
		return -1;
	if (!n)
		return 0;
	s->given[s->n_given++] = t->gives;
	if (t->path) {
		path = toolchain_name(s, place, t->path, e);
		if (!path || buf_addf(&s->path, e, "%s:", path) < 0)
			return -1;
	}
	if (!t->variable)
		return 0;
	path = toolchain_name(s, place, ".", e);
	if (!path)
		return -1;
	s->env[s->n_env++] = (struct field_pair){ str_of(t->variable), str_of(path) };
	return 0;
}

static int toolchain_search(struct toolchain_search *s, struct err *e)
{
	const char *path;

	for (size_t i = 0; i < ARRAY_LEN(toolchains); i++) {
		char place[PATH_MAX];

		if (toolchain_find(s, &toolchains[i], place) &&
		    toolchain_give(s, &toolchains[i], place, e) < 0)
			return -1;
	}
	if (!s->path.n)
		return 0;
	path = arena_printf(s->a, e, "%.*s" PROGRAMS_PATH_INSIDE, STR_ARG(buf_str(&s->path)));
	if (!path)
		return -1;
	s->env[s->n_env++] = (struct field_pair){ STR_LIT("PATH"), str_of(path) };
	return 0;
}

int toolchains_find(struct arena *a, struct toolchains *ret, struct err *e)
{
	struct toolchain_search s = { .home = -1, .a = a, .path = BUF_INIT(PATH_BYTES) };
	const char *home = getenv("HOME");
	int rc;

	*ret = (struct toolchains){ .env = { NULL, 0 } };
	if (!home || *home != '/' || !realpath(home, s.home_path) || !s.home_path[1] ||
	    strpbrk(s.home_path, ":*?[\\"))
		return 0;
	s.home = open(s.home_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s.home < 0)
		return 0;
	s.read = arena_array(a, READ_MAX, sizeof(*s.read), e);
	s.env = arena_array(a, ARRAY_LEN(toolchains) + 1, sizeof(*s.env), e);
	rc = s.read && s.env ? toolchain_search(&s, e) : -1;
	close_fd(&s.home);
	buf_fini(&s.path);
	ret->read = (struct field_strs){ s.read, s.n_read };
	ret->env = (struct field_map){ s.env, s.n_env };
	return rc;
}

bool toolchains_given(const struct config_file *f, const char *folder, bool operator)
{
	for (size_t i = 0; f && i < f->workspaces.n; i++) {
		const struct config_workspace *w = &f->workspaces.p[i];
		char dir[PATH_MAX], real[PATH_MAX];

		snprintf(dir, sizeof(dir), "%.*s", STR_ARG(w->dir));
		if (w->has_toolchains && realpath(dir, real) && strcmp(real, folder) == 0)
			return w->toolchains;
	}
	return operator;
}
