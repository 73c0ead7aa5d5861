/* Finds the files that a repository makes git of the host run or read; see held.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/gitconf.h"
#include "box/warden/held_find.h"

enum {
	INCLUDES_MAX = 10,
	FILES_MAX = 64,
	DEPTH_MAX = 8,
	WORDS_MAX = 20000,
	SHA1_BYTES = 20,
	SHA256_BYTES = 32
};

struct git {
	struct finder *f;
	const char *top; /* of its files, on the host */
	const char *dir; /* the git directory */
	const char *from; /* the directory of the file that is being read */
	unsigned depth; /* of includes */
	unsigned files;
	size_t hash;
	unsigned level; /* of submodules */
	char worktree[WIRE_PATH_MAX]; /* core.worktree; "": it is not set */
};

int held_read_host(const struct finder *f, const char *path, size_t most, char **ret, size_t *ret_n)
{
	struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	autoclose int fd = (int)syscall(SYS_openat2, f->from->root, path, &how, sizeof(how));
	struct stat st;
	size_t n = 0;
	ssize_t got;

	*ret = NULL;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if ((uint64_t)st.st_size > most)
		return err_set(f->e, ERR_DENIED,
			       "a file of this repository's git is too large to be looked "
			       "through; rw-all gives the folder without that");
	*ret = malloc((size_t)st.st_size + 1);
	if (!*ret)
		return err_set(f->e, ERR_LIMIT, "out of memory");
	while (n < (size_t)st.st_size && (got = read(fd, *ret + n, (size_t)st.st_size - n)) > 0)
		n += (size_t)got;
	(*ret)[n] = '\0';
	*ret_n = n;
	return 1;
}

static int read_below(const struct finder *f, const char *dir, const char *name, size_t most,
		      char **ret, size_t *ret_n)
{
	char path[WIRE_PATH_MAX];

	*ret = NULL;
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return 0;
	return held_read_host(f, path, most, ret, ret_n);
}

/* ---- configuration ------------------------------------------------------------------------- */

enum key_class {
	KEY_COMMAND, /* words of it may be programs, their arguments or files */
	KEY_PATH, /* all of it is a directory, which need not exist yet */
	KEY_INCLUDE,
	KEY_HARMLESS,
};

/* The first that fits. A '*' stands for any text. */
static const struct {
	const char *key;
	enum key_class class;
} keys[] = {
	{ "include.path", KEY_INCLUDE },
	{ "includeif.*.path", KEY_INCLUDE },
	{ "core.hookspath", KEY_PATH },
	{ "init.templatedir", KEY_PATH },
	/* Names of branches, people and remotes, and addresses. */
	{ "advice.*", KEY_HARMLESS },
	{ "author.*", KEY_HARMLESS },
	{ "branch.*", KEY_HARMLESS },
	{ "color.*", KEY_HARMLESS },
	{ "column.*", KEY_HARMLESS },
	{ "committer.*", KEY_HARMLESS },
	{ "remote.*.fetch", KEY_HARMLESS },
	{ "remote.*.push", KEY_HARMLESS },
	{ "remote.*.pushurl", KEY_HARMLESS },
	{ "remote.*.url", KEY_HARMLESS },
	{ "submodule.*.branch", KEY_HARMLESS },
	{ "submodule.*.url", KEY_HARMLESS },
	{ "submodule.active", KEY_HARMLESS },
	{ "url.*", KEY_HARMLESS },
	{ "user.*", KEY_HARMLESS },
	/* Text that git shows or leaves out. */
	{ "commit.template", KEY_HARMLESS },
	{ "core.excludesfile", KEY_HARMLESS },
	{ "mailmap.*", KEY_HARMLESS },
	/* Where the files of the repository are: each of these names the folder itself. */
	{ "core.worktree", KEY_HARMLESS },
	{ "safe.directory", KEY_HARMLESS },
};

static bool key_fits(const char *pattern, const char *key)
{
	const char *star = strchr(pattern, '*');
	size_t before = star ? (size_t)(star - pattern) : 0, after, n = strlen(key);

	if (!star)
		return strcmp(pattern, key) == 0;
	after = strlen(star + 1);
	return n >= before + after && strncmp(pattern, key, before) == 0 &&
	       strcmp(star + 1, key + n - after) == 0;
}

static enum key_class key_classify(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (key_fits(keys[i].key, key))
			return keys[i].class;
	}
	return KEY_COMMAND;
}

/* Such a value names nothing, unless all of it is a path: a file may have any name. */
static bool is_plain(enum key_class class, const char *value)
{
	static const char *const words[] = { "true", "false", "yes", "no", "on", "off", "auto" };

	if (class == KEY_PATH || class == KEY_INCLUDE)
		return !*value;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcasecmp(value, words[i]) == 0)
			return true;
	}
	return value[strspn(value, "0123456789kmgKMG")] == '\0';
}

static const char word_ends[] = " \t\n;&|()<>$`'\"{}=,!";

/* A word of a command. Without a slash it may be a file that an interpreter reads. One that does
 * not exist is taken for a file if it looks like one, since branches have slashes, too. */
static int hold_word(struct git *g, const char *word, bool is_first)
{
	const char *slash = strrchr(word, '/'), *dot = strrchr(word, '.');
	enum missing missing = slash && (is_first || *word == '.' || (dot && dot > slash))
				     ? MISSING_DIRECTORY
				     : MISSING_NOTHING;

	switch (held_place(g->f, word)) {
	case PLACE_FILE:
		return held_path(g->f, word, MISSING_NOTHING);
	case PLACE_DIRECTORY:
		return slash ? held_path(g->f, word, MISSING_NOTHING) : 0;
	case PLACE_MISSING:
		return missing ? held_path(g->f, word, missing) : 0;
	default:
		return 0;
	}
}

/* Programs run what is in a directory that follows such a word. Others that a command names, as in
 * `eslint src`, are worked in. */
static bool enters_directory(const char *word)
{
	static const char *const words[] = {
		"-C", "--cwd", "--directory", "--prefix", "cd", "pushd"
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcmp(word, words[i]) == 0)
			return true;
	}
	return false;
}

/* `python3 -m tools.fmt` runs what is in tools, or tools.py. */
static int hold_module(struct git *g, const char *word)
{
	char name[WIRE_PATH_MAX];
	int n = (int)strcspn(word, ".");

	if (snprintf(name, sizeof(name), "%.*s", n, word) >= (int)sizeof(name) ||
	    held_place(g->f, name) < PLACE_DIRECTORY)
		snprintf(name, sizeof(name), "%.*s.py", (int)sizeof(name) - 4 < n ? 0 : n, word);
	return n ? held_path(g->f, name, MISSING_NOTHING) : 0;
}

static int hold_words(struct git *g, char *value)
{
	bool is_first = true, python = false;
	const char *before = "";
	char *rest;

	for (char *word = strtok_r(value, word_ends, &rest); word;
	     word = strtok_r(NULL, word_ends, &rest)) {
		if (++g->f->words > WORDS_MAX)
			return held_too_long(g->f);
		if (python && strcmp(before, "-m") == 0 && hold_module(g, word) < 0)
			return -1;
		if (enters_directory(before) && held_place(g->f, word) >= PLACE_DIRECTORY &&
		    held_path(g->f, word, MISSING_NOTHING) < 0)
			return -1;
		if (hold_word(g, word, is_first) < 0)
			return -1;
		is_first = false;
		python = python || strncmp(word, "python", 6) == 0 || strstr(word, "/python");
		before = word;
	}
	return 0;
}

static int read_config(struct git *g, const char *path);

/* ~/REST, as walk_from_home(). */
static int read_from_home(struct git *g, const char *value)
{
	const char *rest = strchrnul(value, '/'), *host = g->f->from->host;
	char path[WIRE_PATH_MAX];

	for (const char *at = host; at && *at;) {
		at = strchrnul(at + 1, '/');
		if (!*at && !g->f->from->is_home)
			break;
		if (snprintf(path, sizeof(path), "%.*s%s", (int)(at - host), host, rest) <
			    (int)sizeof(path) &&
		    read_config(g, path) < 0)
			return -1;
	}
	return 0;
}

static int hold_include(struct git *g, const char *value)
{
	const char *from = g->from;
	char path[WIRE_PATH_MAX];
	int rc = 0;

	snprintf(g->f->base, sizeof(g->f->base), "%s", from);
	if (held_path(g->f, value, MISSING_FILE) < 0)
		return -1;
	if (++g->depth > INCLUDES_MAX || g->files++ > FILES_MAX)
		return err_set(g->f->e, ERR_DENIED,
			       "this repository's configuration includes too many files to be "
			       "looked through; rw-all gives the folder without that");
	if (*value == '~')
		rc = read_from_home(g, value);
	else if (snprintf(path, sizeof(path), *value == '/' ? "%.0s%s" : "%s/%s", from, value) <
		 (int)sizeof(path))
		rc = read_config(g, path);
	g->from = from;
	g->depth--;
	return rc;
}

static int hold_path_value(struct git *g, const char *value)
{
	char above[WIRE_PATH_MAX];
	size_t n = strlen(value);

	snprintf(g->f->base, sizeof(g->f->base), "%s", g->dir);
	/* hooks that serve others start in the git directory */
	if (*value != '/' && *value != '~' && held_place(g->f, value) != PLACE_MISSING &&
	    held_path(g->f, value, MISSING_NOTHING) < 0)
		return -1;
	snprintf(g->f->base, sizeof(g->f->base), "%s", g->top);
	/* the hooks of husky, in .husky/_, run the scripts beside that */
	if (n > 2 && n < sizeof(above) && strcmp(value + n - 2, "/_") == 0) {
		snprintf(above, sizeof(above), "%.*s", (int)(n - 2), value);
		if (held_path(g->f, above, MISSING_DIRECTORY) < 0)
			return -1;
	}
	return held_path(g->f, value, MISSING_DIRECTORY);
}

/* The path that a file in dir names. Git writes one with each ".." first. false: nobody can open
 * it. */
static bool join_path(const char *dir, const char *value, char ret[WIRE_PATH_MAX])
{
	char from[WIRE_PATH_MAX];
	char *slash;

	snprintf(from, sizeof(from), "%s", *value == '/' ? "" : dir);
	for (; strncmp(value, "..", 2) == 0 && (value[2] == '/' || !value[2]);
	     value += value[2] ? 3 : 2) {
		slash = strrchr(from, '/');
		if (slash)
			*slash = '\0';
	}
	return snprintf(ret, WIRE_PATH_MAX, "%s%s%s", from, *value && *value != '/' ? "/" : "",
			value) < WIRE_PATH_MAX;
}

static int on_variable(void *data, const char *key, char *value)
{
	static const char optional[] = ":(optional)";
	struct git *g = data;
	enum key_class class = key_classify(key);

	if (strcmp(key, "extensions.objectformat") == 0 && strcasecmp(value, "sha256") == 0)
		g->hash = SHA256_BYTES;
	/* its files may be elsewhere than where its .git is */
	if (strcmp(key, "core.worktree") == 0 && !join_path(g->dir, value, g->worktree))
		g->worktree[0] = '\0';
	if (class == KEY_HARMLESS || is_plain(class, value))
		return 0;
	if (strncmp(value, optional, strlen(optional)) == 0)
		value += strlen(optional);
	g->f->why = key;
	if (class == KEY_INCLUDE)
		return hold_include(g, value);
	if (class == KEY_PATH && hold_path_value(g, value) < 0)
		return -1;
	snprintf(g->f->base, sizeof(g->f->base), "%s", g->top);
	if (held_place(g->f, value) == PLACE_FILE && held_path(g->f, value, MISSING_NOTHING) < 0)
		return -1; /* with spaces in it */
	return hold_words(g, value);
}

static int read_config(struct git *g, const char *path)
{
	char dir[WIRE_PATH_MAX];
	autofree char *text = NULL;
	char *slash;
	size_t n;
	int rc = held_read_host(g->f, path, GITCONF_BYTES_MAX, &text, &n);

	if (rc <= 0)
		return rc;
	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	g->from = dir;
	errno = 0;
	rc = gitconf_read((struct str){ text, n }, on_variable, g);
	if (rc < 0 && g->f->e->code == ERR_NONE)
		return err_set(g->f->e, ERR_DENIED,
			       "the git configuration of this folder can't be read (%s), so what "
			       "it makes git of the host run can't be protected; rw-all gives the "
			       "folder without that",
			       errno == EINVAL ? "its syntax is wrong" : strerror(errno));
	return rc;
}

/* ---- submodules ---------------------------------------------------------------------------- */

/* What follows "gitdir: " in a .git that is a file, as an absolute path. */
static bool read_gitfile(const struct finder *f, const char *top, char ret[WIRE_PATH_MAX])
{
	autofree char *text = NULL;
	size_t n;

	if (read_below(f, top, ".git", WIRE_PATH_MAX, &text, &n) <= 0 ||
	    strncmp(text, "gitdir: ", 8) != 0)
		return false;
	text[8 + strcspn(text + 8, "\r\n")] = '\0';
	return snprintf(ret, WIRE_PATH_MAX, text[8] == '/' ? "%.0s%s" : "%s/%s", top, text + 8) <
	       WIRE_PATH_MAX;
}

/* Keeps git of the host out of what a sandbox puts there, as it runs in each submodule. */
static int on_link(void *data, const char *path, enum gitindex_kind kind)
{
	struct git *g = data;
	char at[WIRE_PATH_MAX], top[WIRE_PATH_MAX], gitdir[WIRE_PATH_MAX];

	if (kind != GITINDEX_LINK)
		return 0;
	g->f->why = "a submodule";
	if (snprintf(top, sizeof(top), "%s/%s", g->top, path) >= (int)sizeof(top) ||
	    snprintf(at, sizeof(at), "%s/.git", path) >= (int)sizeof(at))
		return 0;
	snprintf(g->f->base, sizeof(g->f->base), "%s", g->top);
	if (held_place(g->f, at) == PLACE_MISSING) /* one that is empty is sealed as a whole */
		return held_path(g->f, held_place(g->f, path) == PLACE_FULL ? at : path,
				 MISSING_DIRECTORY);
	if (held_path(g->f, at, MISSING_NOTHING) < 0)
		return -1;
	if (!read_gitfile(g->f, top, gitdir) &&
	    snprintf(gitdir, sizeof(gitdir), "%s/.git", top) >= (int)sizeof(gitdir))
		return 0;
	return held_find_git(g->f, top, gitdir, g->level + 1);
}

static int read_index(struct git *g)
{
	autofree char *text = NULL, *more = NULL;
	char name[sizeof("sharedindex.") + 2 * SHA256_BYTES];
	struct str shared = STR_NONE, none;
	size_t n;
	int rc = read_below(g->f, g->dir, "index", GITINDEX_BYTES_MAX, &text, &n);

	if (rc <= 0)
		return rc;
	rc = gitindex_read((struct str){ text, n }, g->hash, on_link, g, &shared);
	if (rc == 0 && shared.n) {
		int at = snprintf(name, sizeof(name), "sharedindex.");

		for (size_t i = 0; i < shared.n; i++)
			at += snprintf(name + at, sizeof(name) - (size_t)at, "%02x",
				       (unsigned char)shared.p[i]);
		rc = read_below(g->f, g->dir, name, GITINDEX_BYTES_MAX, &more, &n);
		if (rc > 0)
			rc = gitindex_read((struct str){ more, n }, g->hash, on_link, g, &none);
	}
	if (rc < 0 && g->f->e->code == ERR_NONE)
		return err_set(g->f->e, ERR_DENIED,
			       "the git index of this folder can't be read, so its submodules "
			       "can't be protected; rw-all gives the folder without that");
	return rc;
}

/* The directory that has the configuration of a worktree's git directory. */
static void find_common(const struct finder *f, const char *dir, char ret[WIRE_PATH_MAX])
{
	autofree char *text = NULL;
	size_t n;

	snprintf(ret, WIRE_PATH_MAX, "%s", dir);
	if (read_below(f, dir, "commondir", WIRE_PATH_MAX, &text, &n) <= 0)
		return;
	text[strcspn(text, "\r\n")] = '\0';
	if (snprintf(ret, WIRE_PATH_MAX, *text == '/' ? "%.0s%s" : "%s/%s", dir, text) >=
	    WIRE_PATH_MAX)
		ret[0] = '\0';
}

static int read_all(struct git *g, const char *top, const char *common)
{
	char path[WIRE_PATH_MAX];

	g->top = top;
	g->files = 0;
	if (snprintf(path, sizeof(path), "%s/config", common) < (int)sizeof(path) &&
	    read_config(g, path) < 0)
		return -1;
	if (snprintf(path, sizeof(path), "%s/config.worktree", g->dir) < (int)sizeof(path) &&
	    read_config(g, path) < 0)
		return -1;
	return read_index(g);
}

int held_find_git(struct finder *f, const char *top, const char *dir, unsigned depth)
{
	struct git g = { .f = f, .dir = dir, .hash = SHA1_BYTES, .level = depth };
	char common[WIRE_PATH_MAX], elsewhere[WIRE_PATH_MAX];

	if (depth > DEPTH_MAX)
		return err_set(f->e, ERR_DENIED,
			       "submodules of this folder are nested too deeply to be looked "
			       "through; rw-all gives the folder without that");
	find_common(f, dir, common);
	if (read_all(&g, top, common) < 0)
		return -1;
	if (!g.worktree[0] || strcmp(g.worktree, top) == 0)
		return 0;
	memcpy(elsewhere, g.worktree, sizeof(elsewhere));
	return read_all(&g, elsewhere, common);
}

bool held_git_dir(const struct finder *f, const char *top, char ret[WIRE_PATH_MAX])
{
	return read_gitfile(f, top, ret) ||
	       snprintf(ret, WIRE_PATH_MAX, "%s/.git", top) < WIRE_PATH_MAX;
}

/* Git obeys no repository of somebody else (safe.directory). So nobody can keep others from their
 * folders by a /tmp/.git. */
static bool is_obeyed(const struct finder *f, const char *top)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	char path[WIRE_PATH_MAX];
	autoclose int fd = -1;
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/.git", top) >= (int)sizeof(path))
		return false;
	fd = (int)syscall(SYS_openat2, f->from->root, path, &how, sizeof(how));
	return fd >= 0 && fstat(fd, &st) == 0 &&
	       (st.st_uid == f->from->owner->st_uid || st.st_uid == 0);
}

int held_find_above(struct finder *f)
{
	char top[WIRE_PATH_MAX], dir[WIRE_PATH_MAX];
	char *slash;

	snprintf(top, sizeof(top), "%s", f->from->host);
	while ((slash = strrchr(top, '/')) && slash > top) {
		*slash = '\0';
		if (is_obeyed(f, top) && held_git_dir(f, top, dir) &&
		    held_find_git(f, top, dir, 0) < 0)
			return -1;
	}
	return 0;
}

bool held_worktree_of(const struct finder *f, const char *path, char ret[WIRE_PATH_MAX])
{
	char dir[WIRE_PATH_MAX];
	autofree char *text = NULL, *common = NULL;
	char *end;
	size_t n;

	if (snprintf(dir, sizeof(dir), "%s/%s", f->from->host, path) >= (int)sizeof(dir) ||
	    read_below(f, dir, "commondir", WIRE_PATH_MAX, &common, &n) <= 0 ||
	    read_below(f, dir, "gitdir", WIRE_PATH_MAX, &text, &n) <= 0)
		return false;
	text[strcspn(text, "\r\n")] = '\0';
	end = strrchr(text, '/');
	if (!end || strcmp(end, "/.git") != 0)
		return false;
	*end = '\0';
	return join_path(dir, text, ret);
}

static int on_any(void *data, const char *key, char *value)
{
	enum key_class class = key_classify(key);

	(void)data;
	return class != KEY_HARMLESS && !is_plain(class, value);
}

int held_config_runs(struct str text)
{
	return gitconf_read(text, on_any, NULL);
}

struct words {
	held_word_fn *fn;
	void *data;
};

static int on_named(void *data, const char *key, char *value)
{
	const struct words *w = data;
	enum key_class class = key_classify(key);
	bool whole = class == KEY_PATH || class == KEY_INCLUDE;
	char *rest;
	int rc;

	if (class == KEY_HARMLESS || is_plain(class, value))
		return 0;
	rc = w->fn(w->data, value, whole);
	for (char *word = whole ? NULL : strtok_r(value, word_ends, &rest); word && rc == 0;
	     word = strtok_r(NULL, word_ends, &rest))
		rc = w->fn(w->data, word, false);
	return rc;
}

int held_config_words(struct str text, held_word_fn *fn, void *data)
{
	return gitconf_read(text, on_named, &(struct words){ fn, data });
}

static int on_worktree(void *data, const char *key, char *value)
{
	if (strcmp(key, "core.worktree") == 0)
		snprintf(data, WIRE_PATH_MAX, "%s", value);
	return 0;
}

static bool is_folder(const struct finder *f, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	autoclose int fd = (int)syscall(SYS_openat2, f->from->root, path, &how, sizeof(how));
	struct stat a, b;

	return fd >= 0 && fstat(fd, &a) == 0 && fstat(f->from->top, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool held_is_named(const struct finder *f)
{
	char said[WIRE_PATH_MAX] = "", top[WIRE_PATH_MAX], named[WIRE_PATH_MAX];
	autofree char *text = NULL;
	size_t n;

	return read_below(f, f->from->host, "config", GITCONF_BYTES_MAX, &text, &n) > 0 &&
	       gitconf_read((struct str){ text, n }, on_worktree, said) == 0 && said[0] &&
	       join_path(f->from->host, said, top) && f->from->has(f->from->data, top) &&
	       read_gitfile(f, top, named) && is_folder(f, named);
}
