#include "config/places.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NPMRC_LINE_MAX = 4096 };

static bool places_runs(const char *folder, size_t n, const char *name, char *ret, size_t size)
{
	struct stat st;
	int rc = snprintf(ret, size, "%.*s/%s", (int)n, folder, name);

	return n > 0 && rc > 0 && (size_t)rc < size && stat(ret, &st) == 0 && S_ISREG(st.st_mode) &&
	       access(ret, X_OK) == 0;
}

/* Of several, as of versions of Node.js, the newest. */
static bool places_glob(const char *pattern, const char *name, char *ret, size_t size)
{
	glob_t g = { .gl_pathc = 0 };
	const char *best = NULL;
	char at[PATH_MAX];

	if (glob(pattern, 0, NULL, &g) == 0) {
		for (size_t i = 0; i < g.gl_pathc; i++) {
			const char *folder = g.gl_pathv[i];

			if ((!best || strverscmp(folder, best) > 0) &&
			    places_runs(folder, strlen(folder), name, at, sizeof(at)))
				best = folder;
		}
	}
	if (best)
		places_runs(best, strlen(best), name, ret, size);
	globfree(&g);
	return best;
}

static bool places_below(const char *home, struct str place, const char *name, char *ret,
			 size_t size)
{
	bool below = place.n > 1 && place.p[0] == '~' && place.p[1] == '/';
	char pattern[PATH_MAX];
	int n = below ? snprintf(pattern, sizeof(pattern), "%s%.*s", home, (int)place.n - 1,
				 place.p + 1)
		      : snprintf(pattern, sizeof(pattern), "%.*s", STR_ARG(place));

	return n > 0 && n < (int)sizeof(pattern) && (!below || *home) &&
	       places_glob(pattern, name, ret, size);
}

/* prefix=FOLDER of ~/.npmrc: what `npm install -g` installs is in FOLDER/bin. */
static bool places_npm(const char *home, const char *name, char *ret, size_t size)
{
	char path[PATH_MAX], line[NPMRC_LINE_MAX], folder[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/.npmrc", home);
	FILE *f = *home && n < (int)sizeof(path) ? fopen(path, "re") : NULL;
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		char *value = line + strspn(line, " \t");

		if (strncmp(value, "prefix", 6) != 0)
			continue;
		value += 6;
		value += strspn(value, " \t");
		if (*value++ != '=')
			continue;
		value += strspn(value, " \t\"");
		value[strcspn(value, "\r\n\"")] = '\0';
		if (strncmp(value, "${HOME}", 7) == 0)
			n = snprintf(folder, sizeof(folder), "%s%s/bin", home, value + 7);
		else if (*value == '~')
			n = snprintf(folder, sizeof(folder), "%s%s/bin", home, value + 1);
		else
			n = snprintf(folder, sizeof(folder), "%s/bin", value);
		found = n < (int)sizeof(folder) && *folder == '/' &&
			places_runs(folder, strlen(folder), name, ret, size);
	}
	if (f)
		fclose(f);
	return found;
}

bool places_find(const char *name, const struct field_strs *more, char *ret, size_t size)
{
	static const char *const places[] = {
		"~/.local/bin",	     "~/.nvm/versions/node/*/bin",
		"~/.npm-global/bin", "~/.local/share/pnpm",
		"~/.volta/bin",	     "~/.bun/bin",
		"~/.deno/bin",	     "~/.cargo/bin",
		"~/.fnm/*/*/*/bin",  "~/.local/share/fnm/*/*/*/bin",
		"~/.asdf/shims",     "~/.pyenv/shims",
		"/usr/local/bin",
	};
	const char *home = getenv("HOME"), *path = getenv("PATH");
	bool found = false;

	home = home ? home : "";
	for (size_t i = 0; more && !found && i < more->n; i++)
		found = places_below(home, more->p[i], name, ret, size);
	for (; path && *path && !found; path += strspn(path, ":")) {
		size_t n = strcspn(path, ":");

		found = *path == '/' && places_runs(path, n, name, ret, size);
		path += n;
	}
	found = found || places_npm(home, name, ret, size);
	for (size_t i = 0; !found && i < ARRAY_LEN(places); i++)
		found = places_below(home, str_of(places[i]), name, ret, size);
	return found;
}
