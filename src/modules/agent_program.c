#include "modules/agent_program.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "config/places.h"

enum { FIRST_LINE_MAX = 256, INTERPRETER_WORDS = 8, READ_MAX = 4 };

/* ---- packages -------------------------------------------------------------------------------- */

struct str agent_program_package(const struct agent_preset *p, const struct field_strs *argv)
{
	for (size_t i = 0; argv->n && i < p->npm.n; i++) {
		if (str_eq(p->npm.p[i].key, argv->p[0]))
			return p->npm.p[i].value;
	}
	return STR_NONE;
}

/* Without the version: an @ that is not the first character. */
static struct str program_package_name(struct str package)
{
	const char *at = package.n > 1 ? memchr(package.p + 1, '@', package.n - 1) : NULL;

	return at ? (struct str){ package.p, (size_t)(at - package.p) } : package;
}

int agent_image_name(const char *prefix, struct str package, struct str program,
		     char ret[IMAGE_NAME_MAX + 1], struct err *e)
{
	struct str name = program_package_name(package);
	char text[IMAGE_NAME_MAX + 1];

	if (name.n && *name.p == '@')
		name = (struct str){ name.p + 1, name.n - 1 };
	snprintf(text, sizeof(text), "%s%.*s:%.*s", prefix, STR_CUT(name, IMAGE_NAME_MAX),
		 STR_CUT(program, 64));
	return image_name(str_of(text), ret, e);
}

void agent_package_entry(struct str name, struct str package, struct str program, bool scripts,
			 struct str words[4], struct config_server *ret)
{
	words[0] = STR_LIT("-y");
	words[1] = STR_LIT("-p");
	words[2] = package;
	words[3] = program;
	*ret = (struct config_server){ .name = name,
				       .command = STR_LIT("npx"),
				       .args = { words, 4 },
				       .sandbox = { .template = STR_LIT("host"),
						    .install_scripts = scripts } };
}

struct package *agent_package_open(const char *images, struct str image, struct str package,
				   struct str program, struct err *e)
{
	struct package *got = NULL;

	for (int scripts = 0; scripts < 2 && !got; scripts++) {
		struct config_server entry;
		struct str words[4];

		*e = (struct err)ERR_INIT;
		agent_package_entry(program, package, program, scripts, words, &entry);
		got = package_open(images, image, &entry, e);
		if (!got && e->code != ERR_DATA_MISSING)
			return NULL;
	}
	if (got)
		*e = (struct err)ERR_INIT;
	return got;
}

/* ---- lists of what was found ----------------------------------------------------------------- */

static int program_put(struct arena *a, struct field_strs *list, struct str *room, struct str s,
		       struct err *e)
{
	room[list->n] = (struct str){ arena_dup(a, s, e), s.n };
	if (!room[list->n].p)
		return -1;
	list->p = room;
	list->n++;
	return 0;
}

/* before, and then the words of argv behind its program. */
static int program_argv(struct arena *a, const struct field_strs *before,
			const struct field_strs *argv, struct field_strs *ret, struct err *e)
{
	struct str *room = arena_array(a, before->n + argv->n, sizeof(*room), e);

	*ret = (struct field_strs){ NULL, 0 };
	if (!room)
		return -1;
	for (size_t i = 0; i < before->n; i++) {
		if (program_put(a, ret, room, before->p[i], e) < 0)
			return -1;
	}
	for (size_t i = 1; i < argv->n; i++) {
		if (program_put(a, ret, room, argv->p[i], e) < 0)
			return -1;
	}
	return 0;
}

/* ---- fetched --------------------------------------------------------------------------------- */

static int program_fetched(const struct agent_preset *p, const struct field_strs *argv,
			   const char *images, struct arena *a, struct agent_program *ret,
			   struct err *e)
{
	struct str package = agent_program_package(p, argv);
	AUTO(images_close) struct images *store = NULL;
	autoimage struct image image = { .record = { .bytes = 0 } };
	char name[IMAGE_NAME_MAX + 1];
	struct package *got;
	struct err none;
	int rc;

	if (!package.n || !images)
		return 0;
	if (agent_image_name(AGENT_IMAGES, package, argv->p[0], name, e) < 0)
		return -1;
	store = images_look(images, &none);
	if (!store || images_find(store, str_of(name), &image, &none) < 0)
		return 0;
	got = agent_package_open(images, image.record.digest, package, argv->p[0], e);
	if (!got) /* the preset wants another version now, or its files are gone */
		return e->code == ERR_DATA_MISSING ? 0 : -1;
	rc = program_argv(a, &got->record.program, argv, &ret->argv, e);
	snprintf(ret->digest, sizeof(ret->digest), "%s", got->image);
	ret->template = (struct str){ arena_dup(a, str_of(name), e), strlen(name) };
	ret->package = (struct str){ arena_dup(a, got->record.name, e), got->record.name.n };
	ret->version = (struct str){ arena_dup(a, got->record.version, e), got->record.version.n };
	package_unref(got);
	return rc < 0 || !ret->template.p || !ret->package.p || !ret->version.p ? -1 : 1;
}

/* ---- installed ------------------------------------------------------------------------------- */

/* Every sandbox of the template host has that. */
static bool program_is_there(const char *path)
{
	return strncmp(path, "/usr/", 5) == 0;
}

/* The words of a line "#!…"; 0: it is no script. They are in line. */
static size_t program_interpreter(const char *path, char line[FIRST_LINE_MAX],
				  const char *words[INTERPRETER_WORDS])
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t got = fd < 0 ? -1 : read(fd, line, FIRST_LINE_MAX - 1);
	char *save = NULL, *word;
	size_t n = 0;

	if (got < 3 || line[0] != '#' || line[1] != '!')
		return 0;
	line[got] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	for (word = strtok_r(line + 2, " \t", &save); word && n < INTERPRETER_WORDS;
	     word = strtok_r(NULL, " \t", &save)) {
		if (n == 1 && strcmp(word, "-S") == 0)
			continue;
		words[n++] = word;
	}
	return n;
}

/* Which folder a script of npm needs: its own package, where `npm install -g` has put it with what
 * it depends on, or else all packages beside it. */
static void program_npm_folder(const char *path, char ret[PATH_MAX])
{
	static const char dir[] = "/node_modules/";
	const char *at = strstr(path, dir), *end;

	snprintf(ret, PATH_MAX, "%s", path);
	if (!at)
		return;
	end = at + sizeof(dir) - 2;
	if (at - path >= 4 && strncmp(at - 4, "/lib", 4) == 0) {
		end = strchr(at + sizeof(dir) - 1, '/');
		if (end && at[sizeof(dir) - 1] == '@')
			end = strchr(end + 1, '/');
	}
	if (end)
		ret[end - path] = '\0';
}

/* An interpreter: beside the link by which the script was found, as nvm has it, else where programs
 * are. In ret, without links; false: there is none. */
static bool program_find_interpreter(const char *word, const char *found, char ret[PATH_MAX])
{
	const char *name = strrchr(word, '/') ? strrchr(word, '/') + 1 : word,
		   *slash = strrchr(found, '/');
	char path[PATH_MAX + 64];

	if (*word == '/' && strncmp(word, "/usr/bin/env", 13) != 0)
		return realpath(word, ret) != NULL;
	snprintf(path, sizeof(path), "%.*s/%.60s", slash ? (int)(slash - found) : 0, found, name);
	return (access(path, X_OK) == 0 || places_find(name, NULL, path, sizeof(path))) &&
	       realpath(path, ret);
}

struct program_room {
	struct str argv[INTERPRETER_WORDS + 1], read[READ_MAX];
};

static int program_installed_argv(const char *found, const char *path, struct arena *a,
				  struct program_room *room, struct field_strs *before,
				  struct field_strs *read, struct err *e)
{
	char line[FIRST_LINE_MAX], interpreter[PATH_MAX], folder[PATH_MAX];
	const char *words[INTERPRETER_WORDS];
	size_t n = program_interpreter(path, line, words),
	       first = n > 1 && strcmp(words[0], "/usr/bin/env") == 0;

	program_npm_folder(path, folder);
	if (n > first) {
		if (!program_find_interpreter(words[first], found, interpreter))
			return 0;
		if (program_put(a, before, room->argv, str_of(interpreter), e) < 0 ||
		    (!program_is_there(interpreter) &&
		     program_put(a, read, room->read, str_of(interpreter), e) < 0))
			return -1;
		for (size_t i = first + 1; i < n; i++) {
			if (program_put(a, before, room->argv, str_of(words[i]), e) < 0)
				return -1;
		}
	}
	if (program_put(a, before, room->argv, str_of(path), e) < 0 ||
	    (!program_is_there(path) && program_put(a, read, room->read, str_of(folder), e) < 0))
		return -1;
	return 1;
}

static int program_installed(const struct agent_preset *p, const struct field_strs *argv,
			     struct arena *a, struct agent_program *ret, struct err *e)
{
	struct program_room *room = arena_alloc(a, sizeof(*room), e);
	struct field_strs before = { NULL, 0 };
	char name[CONFIG_TEXT_MAX + 1], found[PATH_MAX], path[PATH_MAX];
	int rc;

	if (!room)
		return -1;
	snprintf(name, sizeof(name), "%.*s", STR_CUT(argv->p[0], CONFIG_TEXT_MAX));
	if (*name == '/')
		snprintf(found, sizeof(found), "%s", name);
	else if (!places_find(name, &p->find, found, sizeof(found)))
		return 0;
	if (!realpath(found, path))
		return 0;
	rc = program_installed_argv(found, path, a, room, &before, &ret->read, e);
	if (rc <= 0)
		return rc;
	ret->template = STR_LIT("host");
	ret->path = (struct str){ arena_dup(a, str_of(found), e), strlen(found) };
	return !ret->path.p || program_argv(a, &before, argv, &ret->argv, e) < 0 ? -1 : 1;
}

int agent_program_find(const struct agent_preset *p, const struct field_strs *argv,
		       const char *images, struct arena *a, struct agent_program *ret,
		       struct err *e)
{
	int rc;

	*ret = (struct agent_program){ .template = STR_NONE };
	if (!argv->n)
		return 0;
	rc = program_fetched(p, argv, images, a, ret, e);
	return rc ? rc : program_installed(p, argv, a, ret, e);
}
