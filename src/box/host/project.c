#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "box/host/box.h"
#include "box/wire/project.h"
#include "box/wire/wire.h"

static_assert(ARRAY_LEN(project_entries) <= PROJECT_NAMES_MAX, "each may be a name at the top");

/* Whether path begins with that name, in whatever case. */
static bool begins_with(const char *path, const char *name)
{
	size_t n = strlen(name);

	return strncasecmp(path, name, n) == 0 && (path[n] == '/' || !path[n]);
}

static bool is_listed(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		if (!project_entries[i].bare && begins_with(path, project_entries[i].path))
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(project_told); i++) {
		if (begins_with(path, project_told[i]))
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(project_repositories); i++) {
		if (begins_with(path, project_repositories[i].dir))
			return true;
	}
	return false;
}

struct bare {
	const char *path;
	size_t n; /* of the directory in path, with its '/' */
	box_project_has *has;
	void *arg;
};

static bool bare_has(const struct bare *b, const char *name)
{
	char path[WIRE_PATH_MAX];

	return begins_with(b->path + b->n, name) ||
	       (snprintf(path, sizeof(path), "%.*s%s", (int)b->n, b->path, name) <
			(int)sizeof(path) &&
		b->has(b->arg, path));
}

/* Whether the path makes git take the directory for a repository, or is what it obeys there. */
static bool is_of_bare(const struct bare *b)
{
	static const char *const names[] = { "HEAD",   "objects",	  "refs", "commondir",
					     "config", "config.worktree", "hooks" };
	bool is = false;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		is = is || begins_with(b->path + b->n, names[i]);
	return is && bare_has(b, "HEAD") &&
	       (bare_has(b, "commondir") || (bare_has(b, "objects") && bare_has(b, "refs")));
}

bool box_project_acts(const char *path, box_project_has *has, void *arg)
{
	for (const char *at = path; *at; at += strcspn(at, "/"), at += *at == '/') {
		const struct bare b = { path, (size_t)(at - path), has, arg };

		if (is_listed(at) || is_of_bare(&b))
			return true;
	}
	return false;
}

size_t box_project_names(struct str ret[PROJECT_NAMES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		if (!strchr(project_entries[i].path, '/') && !project_entries[i].bare)
			ret[n++] = str_of(project_entries[i].path);
	}
	return n;
}
