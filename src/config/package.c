#include "config/docker.h"
#include "config/package.h"

const char *const config_package_kind_names[CONFIG_PACKAGE_KINDS] = {
	[CONFIG_NPM] = "npm",
	[CONFIG_PYPI] = "PyPI",
	[CONFIG_IMAGE] = "image",
};

/* ---- runners --------------------------------------------------------------------------------- */

/* An option of a runner, before the package. */
enum option {
	OPTION_IGNORED, /* says nothing that matters here */
	OPTION_PACKAGE, /* its value is the package, and the first word the program */
	OPTION_OWN, /* the runner itself is to run: it fetches nothing */
};

struct option_name {
	const char *name;
	enum option is;
};

static const struct option_name npm_options[] = {
	{ "-y", OPTION_IGNORED },
	{ "--yes", OPTION_IGNORED },
	{ "-q", OPTION_IGNORED },
	{ "--quiet", OPTION_IGNORED },
	{ "-s", OPTION_IGNORED },
	{ "--silent", OPTION_IGNORED },
	{ "--prefer-online", OPTION_IGNORED },
	{ "--no-fund", OPTION_IGNORED },
	{ "--no-audit", OPTION_IGNORED },
	{ "--bun", OPTION_IGNORED },
	{ "-p", OPTION_PACKAGE },
	{ "--package", OPTION_PACKAGE },
	{ "--offline", OPTION_OWN },
	{ "--no-install", OPTION_OWN },
	{ "--no", OPTION_OWN },
	{ "--version", OPTION_OWN },
	{ NULL, OPTION_IGNORED },
};
static const struct option_name pypi_options[] = {
	{ "-q", OPTION_IGNORED },
	{ "--quiet", OPTION_IGNORED },
	{ "--no-progress", OPTION_IGNORED },
	{ "--refresh", OPTION_IGNORED },
	{ "--isolated", OPTION_IGNORED },
	{ "--no-cache", OPTION_IGNORED },
	{ "--from", OPTION_PACKAGE },
	{ "--spec", OPTION_PACKAGE },
	{ "--offline", OPTION_OWN },
	{ "--version", OPTION_OWN },
	{ NULL, OPTION_IGNORED },
};

static const struct runner {
	const char *words[3]; /* the command and its first arguments */
	enum config_package_kind kind;
	const struct option_name *options;
} runners[] = {
	{ { "npx" }, CONFIG_NPM, npm_options },
	{ { "npm", "exec" }, CONFIG_NPM, npm_options },
	{ { "npm", "x" }, CONFIG_NPM, npm_options },
	{ { "pnpm", "dlx" }, CONFIG_NPM, npm_options },
	{ { "pnpx" }, CONFIG_NPM, npm_options },
	{ { "bunx" }, CONFIG_NPM, npm_options },
	{ { "uvx" }, CONFIG_PYPI, pypi_options },
	{ { "uv", "tool", "run" }, CONFIG_PYPI, pypi_options },
	{ { "pipx", "run" }, CONFIG_PYPI, pypi_options },
};

static struct str package_base(struct str command)
{
	const char *slash = command.n ? memrchr(command.p, '/', command.n) : NULL;

	return slash ? (struct str){ slash + 1, command.n - (size_t)(slash + 1 - command.p) }
		     : command;
}

/* How many arguments are words of the runner; -1: it is another program. */
static int runner_words(const struct runner *r, const struct config_server *s)
{
	size_t n = 0;

	if (!str_is(package_base(s->command), r->words[0]))
		return -1;
	for (; n + 1 < ARRAY_LEN(r->words) && r->words[n + 1]; n++) {
		if (n == s->args.n || !str_is(s->args.p[n], r->words[n + 1]))
			return -1;
	}
	return (int)n;
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool package_among(char c, const char *more)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr(more, c));
}

static bool package_all(struct str s, size_t max, const char *more)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!package_among(s.p[i], more))
			return false;
	}
	return s.n > 0 && s.n <= max;
}

/* The first is no dot, dash or the like, so a name is no path and no option. */
static bool package_word(struct str s)
{
	return package_all(s, CONFIG_PACKAGE_NAME_MAX, "-._~") && package_among(s.p[0], "");
}

static struct str package_after(struct str s, size_t n)
{
	return (struct str){ s.p + n, s.n - n };
}

/* [@SCOPE/]NAME[@VERSION] */
static bool npm_read(struct str text, struct config_package *ret)
{
	const char *at = text.n > 1 ? memchr(text.p + 1, '@', text.n - 1) : NULL;
	struct str name = { text.p, at ? (size_t)(at - text.p) : text.n }, last = name;
	const char *slash = name.n ? memchr(name.p, '/', name.n) : NULL;

	if (slash) {
		struct str scope = { name.p + 1, (size_t)(slash - name.p) - 1 };

		last = package_after(name, (size_t)(slash + 1 - name.p));
		if (*name.p != '@' || slash == name.p || !package_word(scope))
			return false;
	}
	ret->name = name;
	ret->version = at ? package_after(text, (size_t)(at + 1 - text.p)) : STR_NONE;
	return package_word(last) && name.n <= CONFIG_PACKAGE_NAME_MAX &&
	       (!at || package_all(ret->version, CONFIG_PACKAGE_VERSION_MAX, "-._+^~<>=*"));
}

/* NAME[EXTRAS][@VERSION], or with one of pip's operators in place of the @. "@latest" is none. */
static bool pypi_read(struct str text, struct config_package *ret)
{
	size_t n = 0, extras = 0;

	while (n < text.n && package_among(text.p[n], "-._"))
		n++;
	if (!package_word((struct str){ text.p, n }))
		return false;
	if (n < text.n && text.p[n] == '[') {
		const char *end = memchr(text.p + n, ']', text.n - n);

		extras = end ? (size_t)(end - text.p) - n : 0;
		if (!package_all((struct str){ text.p + n + 1, extras ? extras - 1 : 0 }, 64,
				 "-._,"))
			return false;
		n += extras + 1;
	}
	ret->name = (struct str){ text.p, n };
	ret->version = n < text.n ? package_after(text, n) : STR_NONE;
	if (str_is(ret->version, "@latest"))
		ret->version = STR_NONE;
	return !ret->version.p || (strchr("@=<>~!", *ret->version.p) &&
				   package_all(package_after(ret->version, 1),
					       CONFIG_PACKAGE_VERSION_MAX, "-._+*<>=~!,"));
}

/* ---- the command ----------------------------------------------------------------------------- */

static int package_refuse(const struct runner *r, struct str text, const char *why, struct err *e)
{
	return err_set(e, ERR_INVALID, "%s \"%.*s\": %s", r->words[0], STR_CUT(text, 80), why);
}

/* The option of this argument, and its value where that is in it: "--from=X". */
static const struct option_name *package_option(const struct runner *r, struct str arg,
						struct str *ret_value)
{
	const char *sign = memchr(arg.p, '=', arg.n);
	struct str name = { arg.p, sign ? (size_t)(sign - arg.p) : arg.n };
	const struct option_name *o = r->options;

	*ret_value = sign ? package_after(arg, name.n + 1) : STR_NONE;
	while (o->name && !str_is(name, o->name))
		o++;
	return o->name ? o : NULL;
}

/* Reads the options from argument *at on. *ret_package: what one of them named. 1: go on. */
static int package_options(const struct runner *r, const struct field_strs *args, size_t *at,
			   struct str *ret_package, struct err *e)
{
	for (; *at < args->n && args->p[*at].n > 1 && args->p[*at].p[0] == '-'; ++*at) {
		struct str arg = args->p[*at], value;
		const struct option_name *o = package_option(r, arg, &value);

		if (str_is(arg, "--")) {
			++*at;
			return 1;
		}
		if (!o)
			return package_refuse(r, arg,
					      "this option is not known here: leave it out, or "
					      "install the server and name its program",
					      e);
		if (o->is == OPTION_OWN)
			return 0;
		if (o->is != OPTION_PACKAGE)
			continue;
		if (ret_package->p)
			return package_refuse(r, arg, "only one package can be fetched", e);
		if (!value.p && ++*at < args->n)
			value = args->p[*at];
		*ret_package = value;
	}
	return 1;
}

static int package_spec(const struct runner *r, struct str text, struct config_package *ret,
			struct err *e)
{
	if (r->kind == CONFIG_NPM ? npm_read(text, ret) : pypi_read(text, ret))
		return 1;
	return package_refuse(r, text,
			      memmem(text.p, text.n, "${", 2)
				      ? "a package has no variables: write its name"
				      : "only packages of a registry are fetched, by NAME or "
					"NAME@VERSION: install others, and name their program",
			      e);
}

/* ---- images ---------------------------------------------------------------------------------- */

struct image_entry {
	const struct config_server *server;
	struct config_package *ret;
};

static int image_option(void *data, const struct config_docker_option *o, size_t arg, size_t at,
			struct err *e)
{
	const struct image_entry *entry = data;
	struct str value = package_after(entry->server->args.p[arg], at);

	if (o->means == CONFIG_DOCKER_PROGRAM)
		entry->ret->program = value;
	if (o->means == CONFIG_DOCKER_PULL)
		entry->ret->pulls = str_is(value, "always");
	return 0;
}

/* [HOST[:PORT]/]NAME[:TAG][@DIGEST], or a transport of skopeo with a path: "oci-archive:/PATH". */
static int image_read(const struct config_server *s, struct config_package *ret, struct err *e)
{
	struct image_entry entry = { s, ret };
	struct str text;
	size_t n = 0, at;

	*ret = (struct config_package){ .kind = CONFIG_IMAGE };
	if (config_docker_options(s, image_option, &entry, &at, e) < 0)
		return -1;
	text = s->args.p[at];
	if (!str_is(s->sandbox.template, "host"))
		return err_set(e, ERR_INVALID,
			       "docker run: its image is its template: leave out \"template\"");
	if (!package_all(text, CONFIG_PACKAGE_NAME_MAX, "-._~/:@") || !package_among(*text.p, ""))
		return err_set(e, ERR_INVALID, "docker run \"%.*s\": %s", STR_CUT(text, 80),
			       memmem(text.p, text.n, "${", 2)
				       ? "an image has no variables: write its name"
				       : "that is no name of an image");
	while (n < text.n && text.p[n] != '@')
		n++;
	for (size_t i = n; i > 0 && text.p[i - 1] != '/'; i--)
		n = text.p[i - 1] == ':' ? i - 1 : n;
	ret->name = (struct str){ text.p, n };
	ret->version = n < text.n ? package_after(text, n) : STR_NONE;
	ret->rest = at + 1;
	return 1;
}

/* ---- the entry ------------------------------------------------------------------------------- */

int config_package_read(const struct config_server *s, struct config_package *ret, struct err *e)
{
	struct str package = STR_NONE;
	const struct runner *r = runners;
	int words = -1, more;
	size_t at;

	for (; r < runners + ARRAY_LEN(runners) && words < 0; r += words < 0)
		words = s->command.p ? runner_words(r, s) : -1;
	if (!s->command.p || s->sandbox.off)
		return 0;
	if (config_docker_is(s))
		return image_read(s, ret, e);
	if (words < 0)
		return 0;
	at = (size_t)words;
	more = package_options(r, &s->args, &at, &package, e);
	if (more <= 0)
		return more;
	if (at >= s->args.n)
		return package_refuse(
			r, STR_LIT(""),
			package.p ? "it names no program to run" : "it names no package", e);
	*ret = (struct config_package){ .kind = r->kind };
	if (package.p) {
		ret->program = s->args.p[at];
		if (!package_word(ret->program))
			return package_refuse(r, ret->program, "that is no name of a program", e);
	} else {
		package = s->args.p[at];
	}
	ret->rest = at + 1;
	/* npm exec reads options up to this; npx passes it on. */
	if (words > 0 && ret->rest < s->args.n && str_is(s->args.p[ret->rest], "--"))
		ret->rest++;
	return package_spec(r, package, ret, e);
}
