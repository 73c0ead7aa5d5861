#include "config/docker.h"

#define FLAG(letter_, name_, means_, ...)                                                          \
	{                                                                                          \
		.letter = letter_, .name = name_, .means = CONFIG_DOCKER_##means_, __VA_ARGS__     \
	}
#define VALUE(letter_, name_, means_, ...)                                                         \
	{                                                                                          \
		.letter = letter_, .name = name_, .has_value = true,                               \
		.means = CONFIG_DOCKER_##means_, __VA_ARGS__                                       \
	}
#define LIMIT .says = "its limits are those of sandboxes"
#define PORTS .says = "the hub talks to it by its standard input and output"
#define HOSTS .says = "it reaches the hosts that are granted (holt mcp allow)"
#define RIGHTS .says = "no sandbox gives more rights"

static const struct config_docker_option options[] = {
	FLAG('i', "interactive", NOTHING),
	FLAG('t', "tty", NOTHING),
	FLAG('q', "quiet", NOTHING),
	FLAG(0, "rm", NOTHING),
	FLAG(0, "init", NOTHING),
	VALUE(0, "name", NOTHING),
	VALUE('h', "hostname", NOTHING),
	VALUE('l', "label", NOTHING),
	VALUE('a', "attach", NOTHING),
	VALUE(0, "restart", NOTHING),
	VALUE(0, "platform", NOTHING), /* an image of another one is refused anyway */
	VALUE(0, "security-opt", NOTHING),
	VALUE(0, "cap-drop", NOTHING),
	VALUE(0, "log-driver", NOTHING),
	VALUE(0, "tmpfs", NOTHING), /* all of it is in memory, and can be written */
	VALUE(0, "pull", PULL),
	VALUE('e', "env", ENV),
	VALUE('v', "volume", VOLUME),
	VALUE(0, "mount", MOUNT),
	VALUE('w', "workdir", FOLDER),
	VALUE(0, "entrypoint", PROGRAM),
	VALUE(0, "network", TOLD, HOSTS),
	VALUE(0, "net", TOLD, HOSTS),
	VALUE(0, "add-host", TOLD, HOSTS),
	VALUE(0, "dns", TOLD, HOSTS),
	VALUE('p', "publish", TOLD, PORTS),
	FLAG('P', "publish-all", TOLD, PORTS),
	VALUE(0, "expose", TOLD, PORTS),
	VALUE('u', "user", TOLD, .says = "a sandbox has one user, which owns all of the image"),
	FLAG(0, "read-only", TOLD, .says = "it can write, and what it has written goes with it"),
	VALUE('m', "memory", TOLD, LIMIT),
	VALUE(0, "memory-swap", TOLD, LIMIT),
	VALUE('c', "cpu-shares", TOLD, LIMIT),
	VALUE(0, "cpus", TOLD, LIMIT),
	VALUE(0, "pids-limit", TOLD, LIMIT),
	VALUE(0, "shm-size", TOLD, LIMIT),
	VALUE(0, "ulimit", TOLD, LIMIT),
	VALUE(0, "env-file", REFUSED, .says = "write its variables as \"env\" of the entry"),
	FLAG('d', "detach", REFUSED, .says = "the hub has to be connected to it: leave it out"),
	FLAG(0, "privileged", REFUSED, RIGHTS),
	VALUE(0, "cap-add", REFUSED, RIGHTS),
	VALUE(0, "device", REFUSED, RIGHTS),
	VALUE(0, "gpus", REFUSED, RIGHTS),
	VALUE(0, "pid", REFUSED, RIGHTS),
	VALUE(0, "ipc", REFUSED, RIGHTS),
	VALUE(0, "userns", REFUSED, RIGHTS),
	VALUE(0, "volumes-from", REFUSED, .says = "name the folders of this host instead"),
	VALUE(0, "volume-driver", REFUSED, .says = "name a folder of this host instead"),
};

static int docker_refuse(struct str option, const char *why, struct err *e)
{
	return err_set(e, ERR_INVALID, "docker run %.*s: %s", STR_CUT(option, 80), why);
}

bool config_docker_is(const struct config_server *s)
{
	const char *slash = s->command.n ? memrchr(s->command.p, '/', s->command.n) : NULL;
	struct str base = s->command;

	if (slash)
		base = (struct str){ slash + 1, s->command.n - (size_t)(slash + 1 - s->command.p) };
	return (str_is(base, "docker") || str_is(base, "podman")) && !s->sandbox.off &&
	       s->args.n > 0 && str_is(s->args.p[0], "run");
}

/* ---- options --------------------------------------------------------------------------------- */

struct docker_walk {
	const struct field_strs *args;
	size_t at; /* the argument that is read */
	config_docker_fn each;
	void *data;
};

static int docker_take(struct docker_walk *w, const struct config_docker_option *o, struct str name,
		       size_t at, struct err *e)
{
	if (o->means == CONFIG_DOCKER_REFUSED)
		return docker_refuse(name, o->says, e);
	return w->each ? w->each(w->data, o, w->at, at, e) : 0;
}

/* Its value is the next argument. */
static int docker_take_next(struct docker_walk *w, const struct config_docker_option *o,
			    struct str name, struct err *e)
{
	if (w->at + 1 >= w->args->n)
		return docker_refuse(name, "it has no value", e);
	w->at++;
	return docker_take(w, o, name, 0, e);
}

/* --NAME, --NAME VALUE, --NAME=VALUE; a flag may be --NAME=true. */
static int docker_long(struct docker_walk *w, struct err *e)
{
	struct str arg = w->args->p[w->at];
	const char *sign = memchr(arg.p, '=', arg.n);
	struct str name = { arg.p, sign ? (size_t)(sign - arg.p) : arg.n };

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if (!str_is((struct str){ name.p + 2, name.n - 2 }, options[i].name))
			continue;
		if (options[i].has_value && !sign)
			return docker_take_next(w, &options[i], name, e);
		return docker_take(w, &options[i], name, options[i].has_value ? name.n + 1 : 0, e);
	}
	return docker_refuse(name, "this option is not known here: leave it out", e);
}

/* -it, -e VALUE, -eVALUE, -ie VALUE */
static int docker_short(struct docker_walk *w, struct err *e)
{
	struct str arg = w->args->p[w->at];

	for (size_t at = 1; at < arg.n; at++) {
		const struct config_docker_option *o = options;

		while (o < options + ARRAY_LEN(options) && o->letter != arg.p[at])
			o++;
		if (o == options + ARRAY_LEN(options))
			return docker_refuse(arg, "this option is not known here: leave it out", e);
		if (o->has_value)
			return at + 1 < arg.n ? docker_take(w, o, arg, at + 1, e)
					      : docker_take_next(w, o, arg, e);
		if (docker_take(w, o, arg, 0, e) < 0)
			return -1;
	}
	return 0;
}

int config_docker_options(const struct config_server *s, config_docker_fn each, void *data,
			  size_t *ret_image, struct err *e)
{
	struct docker_walk w = { .args = &s->args, .at = 1, .each = each, .data = data };

	for (; w.at < s->args.n; w.at++) {
		struct str arg = s->args.p[w.at];

		if (arg.n < 2 || *arg.p != '-')
			break;
		if (str_is(arg, "--")) {
			w.at++;
			break;
		}
		if ((arg.p[1] == '-' ? docker_long(&w, e) : docker_short(&w, e)) < 0)
			return -1;
	}
	if (w.at >= s->args.n)
		return err_set(e, ERR_INVALID, "docker run: it names no image");
	*ret_image = w.at;
	return 0;
}

/* ---- folders --------------------------------------------------------------------------------- */

static struct str docker_cut(struct str *rest, char at)
{
	const char *end = rest->n ? memchr(rest->p, at, rest->n) : NULL;
	struct str part = { rest->p, end ? (size_t)(end - rest->p) : rest->n };

	*rest = end ? (struct str){ end + 1, rest->n - part.n - 1 } : STR_LIT("");
	return part;
}

static bool docker_is_ro(struct str word)
{
	return str_is(word, "ro") || str_is(word, "readonly") || str_is(word, "readonly=true") ||
	       str_is(word, "ro=true");
}

static struct str docker_value(struct str word, const char *const names[])
{
	for (size_t i = 0; names[i]; i++) {
		size_t n = strlen(names[i]);

		if (str_starts(word, names[i]) && word.n > n && word.p[n] == '=')
			return (struct str){ word.p + n + 1, word.n - n - 1 };
	}
	return STR_NONE;
}

static void docker_read_mount(struct str text, struct str *host, struct str *inside, bool *ro)
{
	static const char *const from[] = { "source", "src", NULL };
	static const char *const to[] = { "target", "destination", "dst", NULL };

	while (text.n) {
		struct str word = docker_cut(&text, ','), value;

		if ((value = docker_value(word, from)).p)
			*host = value;
		if ((value = docker_value(word, to)).p)
			*inside = value;
		*ro = *ro || docker_is_ro(word);
	}
}

int config_docker_mount(enum config_docker_means means, struct str text, struct arena *a,
			struct config_mount *ret, struct err *e)
{
	struct str host = STR_NONE, inside = STR_NONE, rest = text;
	bool ro = false;

	if (means == CONFIG_DOCKER_MOUNT) {
		docker_read_mount(rest, &host, &inside, &ro);
	} else {
		host = docker_cut(&rest, ':');
		inside = docker_cut(&rest, ':');
		while (rest.n)
			ro = docker_is_ro(docker_cut(&rest, ',')) || ro;
	}
	if (!host.n || !inside.n || *inside.p != '/')
		return docker_refuse(text, "a folder of this host and its place inside are needed",
				     e);
	if (*host.p != '/')
		return docker_refuse(text,
				     "Docker's volumes are not here: name a folder of this host by "
				     "its absolute path",
				     e);
	ret->read_only = ro;
	ret->host = arena_dup(a, host, e);
	ret->inside = ret->host ? arena_dup(a, inside, e) : NULL;
	return ret->inside ? 0 : -1;
}
