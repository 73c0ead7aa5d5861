#include "config/advice.h"
#include "config/docker.h"
#include "config/package.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/internal.h"
#include "config/places.h"
#include "config/variables.h"

enum { EXPANDED_MAX = 64 << 10 };

struct advice {
	const struct config_server *s;
	void (*say)(void *data, const char *text);
	void *data;
	unsigned n;
	bool host; /* its sandbox has the host's /usr alone */
	struct str before; /* the argument before */
	size_t args; /* so far */
};

static void advice_say(struct advice *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void advice_say(struct advice *a, const char *fmt, ...)
{
	char text[CONFIG_ADVICE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	a->say(a->data, text);
	a->n++;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Whether a path is the folder, or in it. */
static bool advice_below(struct str path, struct str folder)
{
	while (folder.n > 1 && folder.p[folder.n - 1] == '/')
		folder.n--;
	return folder.n && path.n >= folder.n && memcmp(path.p, folder.p, folder.n) == 0 &&
	       (path.n == folder.n || path.p[folder.n] == '/' || folder.n == 1);
}

/* Whether its sandbox has the path: granted, or of the template. */
static bool advice_has(const struct advice *a, struct str path)
{
	static const char *const own[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64",
					   "/etc", "/dev", "/proc", "/sys", "/opt/holt" };
	const struct field_strs *lists[] = { &a->s->sandbox.read, &a->s->sandbox.write,
					     &a->s->sandbox.state };

	for (size_t i = 0; i < ARRAY_LEN(own); i++) {
		if (advice_below(path, str_of(own[i])))
			return true;
	}
	for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
		for (size_t i = 0; i < lists[k]->n; i++) {
			if (advice_below(path, lists[k]->p[i]) ||
			    memmem(lists[k]->p[i].p, lists[k]->p[i].n, "${", 2))
				return true;
		}
	}
	return !a->host;
}

static bool advice_is_there(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

static const char program[] = "the program";

/* A path that the program is given, or is in. */
static void advice_path(struct advice *a, const char *what, const char *path)
{
	/* that the sandbox has of its own, to write into */
	static const char *const made[] = { "/tmp", "/var/tmp", "/workspace" };
	bool there = advice_is_there(path), own = advice_has(a, str_of(path));

	for (size_t i = 0; i < ARRAY_LEN(made); i++)
		own = own ||
		      (!there && what != program && advice_below(str_of(path), str_of(made[i])));
	if (!there && !own)
		advice_say(a, "%s %.160s is not there", what, path);
	else if (!own)
		advice_say(a,
			   "%s %.160s is not granted: \"sandbox\": {\"read\": [\"%.160s\"]}, or "
			   "\"write\"",
			   what, path, path);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* They fetch packages and images, which the hub does for them. */
static bool advice_fetches(struct str command)
{
	static const char *const names[] = { "npx", "npm", "pnpm", "bunx",   "bun",
					     "uvx", "uv",  "pipx", "docker", "podman" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (str_is(command, names[i]))
			return true;
	}
	return false;
}

static void advice_command(struct advice *a)
{
	static const char *const path[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
					    "/usr/bin" };
	char name[CONFIG_TEXT_MAX + 1], at[PATH_MAX];

	snprintf(name, sizeof(name), "%.*s", STR_ARG(a->s->command));
	if (*name == '/') {
		advice_path(a, program, name);
		return;
	}
	for (size_t i = 0; a->host && i < ARRAY_LEN(path); i++) {
		if (snprintf(at, sizeof(at), "%s/%s", path[i], name) < (int)sizeof(at) &&
		    access(at, X_OK) == 0)
			return;
	}
	if (!a->host || advice_fetches(a->s->command))
		return;
	if (places_find(name, NULL, at, sizeof(at)) && !advice_has(a, str_of(at)))
		advice_say(a,
			   "the program \"%.60s\" is not in its sandbox, which has the host's /usr "
			   "alone: make %.160s the command, and grant its folder (\"read\")",
			   name, at);
	else
		advice_say(a, "there is no program \"%.60s\" in /usr: install it", name);
}

static bool advice_has_variable(const struct config_server *s, struct str name)
{
	for (size_t i = 0; i < s->env.n; i++) {
		if (str_eq(s->env.p[i].key, name))
			return true;
	}
	return false;
}

/* An option of docker run that does not do here what it does there. */
static int advice_option(void *data, const struct config_docker_option *o, size_t arg, size_t at,
			 struct err *e)
{
	struct advice *a = data;
	struct str value = a->s->args.p[arg];

	value = (struct str){ value.p + at, value.n - at };
	if (o->means == CONFIG_DOCKER_TOLD &&
	    !(str_is(str_of(o->name), "network") && str_is(value, "none")))
		advice_say(a, "docker run --%s has no effect: %s", o->name, o->says);
	if (o->means == CONFIG_DOCKER_ENV && value.n && !memchr(value.p, '=', value.n) &&
	    !advice_has_variable(a->s, value))
		advice_say(a,
			   "docker run -e %.*s has no value: add it to \"env\" of the entry "
			   "(the hub's own variables are not given to programs)",
			   STR_CUT(value, 80));
	return 0;
}

/* What the hub runs in place of the command, and what keeps it from that. */
static void advice_package(struct advice *a)
{
	struct config_package package;
	struct err e = ERR_INIT;
	size_t image;

	if (config_package_read(a->s, &package, &e) < 0)
		advice_say(a, "%s", e.msg);
	else if (config_docker_is(a->s) &&
		 config_docker_options(a->s, advice_option, a, &image, &e) < 0)
		advice_say(a, "%s", e.msg);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static bool advice_is_blank(const char *text)
{
	size_t n = strlen(text);

	return (n > 2 && *text == '<' && text[n - 1] == '>') || strstr(text, "YOUR_") ||
	       strstr(text, "your-api-key") || strstr(text, "path/to/") ||
	       strncmp(text, "/absolute/path", 14) == 0 || strncmp(text, "/Users/", 7) == 0 ||
	       strncmp(text, "C:\\", 3) == 0;
}

static bool advice_is_script(const char *text)
{
	static const char *const ends[] = { ".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".jar" };
	size_t n = strlen(text), m;

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		m = strlen(ends[i]);
		if (n > m && strcmp(text + n - m, ends[i]) == 0)
			return true;
	}
	return false;
}

/* A port of the host, as people name it there; granted, it is at the same address inside. */
static void advice_local(struct advice *a, const char *text)
{
	static const char *const names[] = { "://localhost", "@localhost", "://127.0.0.1",
					     "@127.0.0.1" };

	for (size_t i = 0; i < a->s->sandbox.network.n; i++) {
		if (str_starts(a->s->sandbox.network.p[i], "127.0.0.1:"))
			return;
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *at = strstr(text, names[i]), *port = at ? strchr(at + 3, ':') : NULL;

		if (!at)
			continue;
		advice_say(a,
			   "a port of this host's localhost has to be granted: holt mcp allow %.*s "
			   "localhost:%.*s",
			   STR_ARG(a->s->name), port ? (int)strspn(port + 1, "0123456789") : 4,
			   port ? port + 1 : "PORT");
		return;
	}
}

static void advice_arg(struct advice *a, const char *text)
{
	const char *equals = *text == '-' ? strchr(text, '=') : NULL;
	const char *value = equals ? equals + 1 : text;
	bool relative = strncmp(value, "./", 2) == 0 || strncmp(value, "../", 3) == 0 ||
			(a->args == 0 && advice_is_script(value) && *value != '/');

	const bool inside = str_is(a->s->command, "docker") || str_is(a->s->command, "podman");

	if (a->host)
		advice_local(a, value);
	if (advice_is_blank(value))
		advice_say(a, "the argument %.80s stands for something: put that in its place",
			   text);
	else if (*value == '/' && value[1] && !inside)
		advice_path(a, "the argument", value);
	else if (relative && !a->s->cwd.p && !advice_fetches(a->s->command))
		advice_say(a,
			   "the argument %.120s is a relative path, and there is no \"cwd\": write "
			   "the absolute one",
			   text);
	a->args++;
}

/* Texts whose variables have no value are told elsewhere, with their place. */
static int advice_text(void *data, enum config_text what, struct str text, struct err *e)
{
	const struct config_values values = { .value = config_value_here };
	autobuf struct buf to = BUF_INIT(EXPANDED_MAX);
	struct advice *a = data;
	struct err none;

	if (config_expand(text, &values, &to, &none) < 0 || !to.n)
		return 0;
	switch (what) {
	case CONFIG_TEXT_ARG:
		if (a->s->command.p)
			advice_arg(a, to.p);
		break;
	case CONFIG_TEXT_CWD:
		advice_path(a, "the folder", to.p);
		break;
	case CONFIG_TEXT_READ:
	case CONFIG_TEXT_WRITE:
	case CONFIG_TEXT_STATE:
		if (!advice_is_there(to.p))
			advice_say(a, "the folder %.160s, which is granted, is not there", to.p);
		break;
	case CONFIG_TEXT_URL:
		if (a->s->type == CONFIG_HTTP && to.n > 4 && strcmp(to.p + to.n - 4, "/sse") == 0)
			advice_say(a, "an address that ends in /sse is mostly one of HTTP+SSE: "
				      "\"type\": \"sse\" (--transport sse)");
		break;
	case CONFIG_TEXT_ENV:
		if (a->host)
			advice_local(a, to.p);
		/* fallthrough */
	case CONFIG_TEXT_HEADER:
		if (advice_is_blank(to.p))
			advice_say(a, "the value %.60s stands for something: put that in its place",
				   to.p);
		break;
	}
	return 0;
}

unsigned config_advise(const struct config_server *s, void (*say)(void *data, const char *text),
		       void *data)
{
	struct advice a = { .s = s,
			    .say = say,
			    .data = data,
			    .host = s->command.p && !s->sandbox.off &&
				    str_is(s->sandbox.template, "host") };
	struct json_pointer where = JSON_POINTER_INIT;
	struct err none;

	if (s->disabled)
		return 0;
	if (s->command.p && !s->sandbox.off) {
		advice_command(&a);
		advice_package(&a);
	}
	if (config_texts(s, advice_text, &a, &where, &none) < 0)
		return a.n;
	return a.n;
}
