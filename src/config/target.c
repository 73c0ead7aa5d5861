/* The texts that a server is started with, with values in place of variables. */
#include "config/docker.h"
#include "config/internal.h"
#include "config/variables.h"

enum {
	TARGET_BYTES_MAX = 256 << 10, /* of all values together */
	TARGET_LISTS_MAX = 64 << 10,
	MOUNTS_MAX = 16,
};

struct target {
	struct config_target *to;
	const struct config_file *file;
	const struct config_server *server;
	const struct config_values *values;
	size_t done[CONFIG_TEXT_STATE + 1]; /* of each */
};

/* The default of an input holds where nobody gives a value. */
static int target_value(void *data, enum config_part_kind kind, struct str name, struct buf *to,
			struct err *e)
{
	const struct target *t = data;
	int has = t->values->value(t->values->data, kind, name, to, e);

	if (has != 0 || kind != CONFIG_PART_INPUT)
		return has;
	for (size_t i = 0; i < t->file->inputs.n; i++) {
		const struct config_input *in = &t->file->inputs.p[i];

		if (str_eq(in->id, name) && in->def.p)
			return buf_add(to, in->def.p, in->def.n, e) < 0 ? -1 : 1;
	}
	return 0;
}

static bool target_is_header(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (((unsigned char)s.p[i] < ' ' && s.p[i] != '\t') || s.p[i] == 0x7f)
			return false;
	}
	return true;
}

/* The message must not have the value. */
static int target_check(enum config_text what, struct str s, struct err *e)
{
	switch (what) {
	case CONFIG_TEXT_ARG:
	case CONFIG_TEXT_ENV:
		return 0;
	case CONFIG_TEXT_CWD:
	case CONFIG_TEXT_READ:
	case CONFIG_TEXT_WRITE:
	case CONFIG_TEXT_STATE:
		return s.n > 0 && s.p[0] == '/'
			     ? 0
			     : err_set(e, ERR_INVALID, "it takes an absolute path");
	case CONFIG_TEXT_URL:
		return str_starts(s, "https://") || str_starts(s, "http://")
			     ? 0
			     : err_set(e, ERR_INVALID, "it takes a URL of http or https");
	case CONFIG_TEXT_HEADER:
		return target_is_header(s)
			     ? 0
			     : err_set(e, ERR_INVALID, "a header takes no control characters");
	}
	return err_set(e, ERR_BUG, "no such text");
}

static void target_put(struct target *t, enum config_text what, char *text)
{
	struct config_target *to = t->to;
	size_t i = t->done[what]++;

	switch (what) {
	case CONFIG_TEXT_ARG:
		to->argv[1 + i] = text;
		break;
	case CONFIG_TEXT_ENV:
		to->env[i] = text;
		break;
	case CONFIG_TEXT_CWD:
		to->cwd = text;
		break;
	case CONFIG_TEXT_URL:
		to->url = text;
		break;
	case CONFIG_TEXT_HEADER:
		to->headers[i] = (struct field_pair){ t->server->headers.p[i].key, str_of(text) };
		break;
	case CONFIG_TEXT_READ:
		to->read[i] = text;
		break;
	case CONFIG_TEXT_WRITE:
		to->write[i] = text;
		break;
	case CONFIG_TEXT_STATE:
		to->state[i] = text;
		break;
	}
}

static int target_text(void *data, enum config_text what, struct str text, struct err *e)
{
	const struct config_values v = { data, target_value };
	struct target *t = data;
	struct buf *b = &t->to->text;
	size_t at = b->n, value = at;

	if (what == CONFIG_TEXT_ENV) {
		struct str name = t->server->env.p[t->done[what]].key;

		if (buf_add(b, name.p, name.n, e) < 0 || buf_add(b, "=", 1, e) < 0)
			return -1;
		value = b->n;
	}
	if (config_expand(text, &v, b, e) < 0 ||
	    target_check(what, (struct str){ b->p + value, b->n - value }, e) < 0 ||
	    buf_add(b, "", 1, e) < 0)
		return -1;
	target_put(t, what, b->p + at);
	return 0;
}

static int target_lists(struct config_target *t, const struct config_server *s, struct err *e)
{
	const size_t more = config_docker_is(s) ? s->args.n : 0; /* options with variables */
	struct arena *a = &t->lists;

	t->headers_n = s->headers.n;
	t->headers = arena_array(a, s->headers.n, sizeof(*t->headers), e);
	t->env = arena_array(a, s->env.n + more + 1, sizeof(*t->env), e);
	t->read = arena_array(a, s->sandbox.read.n + 1, sizeof(*t->read), e);
	t->write = arena_array(a, s->sandbox.write.n + 1, sizeof(*t->write), e);
	t->state = arena_array(a, s->sandbox.state.n + 1, sizeof(*t->state), e);
	if (!t->headers || !t->env || !t->read || !t->write || !t->state)
		return -1;
	if (!s->command.p)
		return 0;
	t->argv = arena_array(a, s->args.n + 2, sizeof(*t->argv), e);
	if (!t->argv)
		return -1;
	t->argv[0] = arena_dup(a, s->command, e);
	return t->argv[0] ? 0 : -1;
}

/* ---- docker run ------------------------------------------------------------------------------ */

static int target_mount(struct config_target *t, enum config_docker_means means, const char *value,
			struct err *e)
{
	if (t->mounts_n == MOUNTS_MAX)
		return err_set(e, ERR_LIMIT, "docker run: more than %d folders", MOUNTS_MAX);
	return config_docker_mount(means, str_of(value), &t->lists, &t->mounts[t->mounts_n++], e);
}

static int target_variable(struct config_target *t, const char *value, struct err *e)
{
	size_t n = 0;

	if (*value == '=')
		return err_set(e, ERR_INVALID, "docker run -e: a variable has no name");
	if (!strchr(value, '='))
		return 0; /* it has the value of the entry's env */
	while (t->env[n])
		n++;
	t->env[n] = value;
	return 0;
}

static int target_option(void *data, const struct config_docker_option *o, size_t arg, size_t at,
			 struct err *e)
{
	struct config_target *t = data;
	const char *value = t->argv[1 + arg] + at;

	switch (o->means) {
	case CONFIG_DOCKER_ENV:
		return target_variable(t, value, e);
	case CONFIG_DOCKER_VOLUME:
	case CONFIG_DOCKER_MOUNT:
		return target_mount(t, o->means, value, e);
	case CONFIG_DOCKER_FOLDER:
		t->cwd = value;
		return target_check(CONFIG_TEXT_CWD, str_of(value), e);
	case CONFIG_DOCKER_NOTHING:
	case CONFIG_DOCKER_PULL:
	case CONFIG_DOCKER_PROGRAM:
	case CONFIG_DOCKER_TOLD:
	case CONFIG_DOCKER_REFUSED:
		break;
	}
	return 0;
}

/* The options of docker, as they are in place of the entry's own members. */
static int target_docker(struct config_target *t, const struct config_server *s, struct err *e)
{
	size_t image;

	if (!config_docker_is(s))
		return 0;
	t->cwd = NULL; /* the entry's is where docker is started */
	t->mounts = arena_array(&t->lists, MOUNTS_MAX, sizeof(*t->mounts), e);
	return t->mounts ? config_docker_options(s, target_option, t, &image, e) : -1;
}

int config_target_init(struct config_target *t, const struct config *c,
		       const struct config_server *s, const struct config_values *v, struct err *e)
{
	struct target target = { .to = t, .file = config_file(c), .server = s, .values = v };

	*t = (struct config_target){ .text = BUF_INIT(TARGET_BYTES_MAX) };
	arena_init(&t->lists, TARGET_LISTS_MAX);
	/* All at once: a buffer that grows leaves values behind, and moves what points into it. */
	if (buf_reserve(&t->text, TARGET_BYTES_MAX, e) && target_lists(t, s, e) == 0 &&
	    config_server_texts(c, s, target_text, &target, e) == 0 && target_docker(t, s, e) == 0)
		return 0;
	config_target_fini(t);
	return -1;
}

void config_target_fini(struct config_target *t)
{
	buf_wipe(&t->text);
	arena_fini(&t->lists);
	*t = (struct config_target){ .argv = NULL };
}
