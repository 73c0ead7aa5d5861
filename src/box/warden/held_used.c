/* Which names of the fixed list programs of this host act on; see held.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/gitconf.h"
#include "box/warden/held_find.h"

enum { PASSWD_MAX = 16 << 20, PASSWD_FIELDS = 7 };

/* -1 with errno. */
static int used_open(int root, const char *home, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	char whole[2 * WIRE_PATH_MAX];

	snprintf(whole, sizeof(whole), "%s/%s", home, path);
	return (int)syscall(SYS_openat2, root, whole, &how, sizeof(how));
}

/* ---- the home ------------------------------------------------------------------------------ */

static bool used_is_usual(const char *variable, const char *home, const char *place)
{
	const char *value = getenv(variable);
	size_t n = strlen(home);

	return !value || !*value ||
	       (strncmp(value, home, n) == 0 && value[n] == '/' &&
		strcmp(value + n + 1, place) == 0);
}

/* The home of the user who runs the hub. */
static void used_find_own(char ret[WIRE_PATH_MAX])
{
	const char *home = getenv("HOME");

	if (home && *home == '/' && strlen(home) < WIRE_PATH_MAX &&
	    used_is_usual("XDG_CONFIG_HOME", home, ".config") &&
	    used_is_usual("XDG_DATA_HOME", home, ".local/share"))
		snprintf(ret, WIRE_PATH_MAX, "%s", home);
}

static bool used_find_line(char *line, uid_t uid, char ret[WIRE_PATH_MAX])
{
	char *fields[PASSWD_FIELDS], *end;
	size_t n = 0;

	for (char *field; n < ARRAY_LEN(fields) && (field = strsep(&line, ":"));)
		fields[n++] = field;
	if (n < ARRAY_LEN(fields) || strtoul(fields[2], &end, 10) != uid || *end ||
	    end == fields[2] || fields[5][0] != '/' || strlen(fields[5]) >= WIRE_PATH_MAX)
		return false;
	snprintf(ret, WIRE_PATH_MAX, "%s", fields[5]);
	return true;
}

static void used_find_listed(int root, uid_t uid, char ret[WIRE_PATH_MAX])
{
	const struct held_from from = { .root = root };
	struct err ignored = ERR_INIT;
	const struct finder f = { .from = &from, .e = &ignored };
	autofree char *text = NULL;
	char *rest, *line;
	size_t n;

	if (held_read_host(&f, "/etc/passwd", PASSWD_MAX, &text, &n) <= 0)
		return;
	rest = text;
	while ((line = strsep(&rest, "\n")) && !used_find_line(line, uid, ret))
		;
}

void held_find_home(int root, const struct stat *owner, char ret[WIRE_PATH_MAX])
{
	autoclose int fd = -1;

	ret[0] = '\0';
	if (owner->st_uid == geteuid())
		used_find_own(ret);
	else
		used_find_listed(root, owner->st_uid, ret);
	fd = used_open(root, ret, ".");
	if (fd < 0)
		ret[0] = '\0';
}

/* ---- what is used -------------------------------------------------------------------------- */

/* Also if that can't be told. */
static bool is_used(const struct held_from *from, const struct project_entry *n)
{
	if (!n->used[0] || !from->home[0])
		return true;
	for (size_t i = 0; i < ARRAY_LEN(n->used) && n->used[i]; i++) {
		autoclose int fd = used_open(from->root, from->home, n->used[i]);

		if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR))
			return true;
	}
	return false;
}

static int used_on_variable(void *data, const char *key, char *value)
{
	bool *explicit = data;

	if (strcmp(key, "safe.barerepository") == 0)
		*explicit = strcmp(value, "explicit") == 0;
	return 0;
}

/* Whether the owner's git takes no folder for a repository by what is in it. */
static bool is_git_explicit(const struct held_from *from)
{
	static const char *const files[] = { ".config/git/config", ".gitconfig" };
	struct err ignored = ERR_INIT;
	const struct finder f = { .from = from, .e = &ignored };
	bool explicit = false;

	for (size_t i = 0; from->home[0] && i < ARRAY_LEN(files); i++) {
		autofree char *text = NULL;
		char path[2 * WIRE_PATH_MAX];
		size_t n;

		snprintf(path, sizeof(path), "%s/%s", from->home, files[i]);
		if (held_read_host(&f, path, GITCONF_BYTES_MAX, &text, &n) > 0 &&
		    gitconf_read((struct str){ text, n }, used_on_variable, &explicit) < 0)
			return false;
	}
	return explicit;
}

/* Git looks no further than at a .git that is a file, which is sealed. */
static bool has_gitfile(int top, const char *dir)
{
	char path[WIRE_PATH_MAX];
	autoclose int fd = -1;
	struct stat st;

	snprintf(path, sizeof(path), "%.3000s/.git", dir);
	fd = held_open(top, path, O_PATH | O_NOFOLLOW, 0);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

bool held_is_needed(const struct held_from *from, const char *dir, const struct project_entry *n)
{
	if (n->missing == STAYS_MISSING ||
	    (n->implicit && (has_gitfile(from->top, dir) || is_git_explicit(from))))
		return false;
	return is_used(from, n);
}
