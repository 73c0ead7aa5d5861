/* `holt build`: an image from a folder. */
#include "cli/build/build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/home.h"
#include "cli/images/store.h"
#include "cli/common/worker.h"
#include "cli/common/verb_call.h"
#include "op/network.h"

enum { GRANTS_TEXT_MAX = 1 << 20 };

/* Files that describe a build. The first that exists is used. */
static const char *const containerfiles[] = { "Containerfile", "Dockerfile" };

struct job {
	const struct build_how *how;
	int dir;
	char name[IMAGE_NAME_MAX + 1];
	const char *container; /* NULL: holt.json */
	struct build_place place;
};

/* ---- what to build --------------------------------------------------------------------------- */

/* The folder's name as an image name: lower case, with '-' for every other character. */
static int name_of_folder(int dir, char ret[IMAGE_NAME_MAX + 1], struct err *e)
{
	char link[32], path[PATH_MAX], name[IMAGE_NAME_MAX + 1];
	const char *from;
	size_t n = 0;
	ssize_t got;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	got = readlink(link, path, sizeof(path) - 1);
	if (got < 0)
		return err_sys(e, errno, "find the folder's name");
	path[got] = '\0';
	from = strrchr(path, '/');
	for (from = from ? from + 1 : path; *from && n < 128; from++) {
		char c = *from >= 'A' && *from <= 'Z' ? (char)(*from - 'A' + 'a') : *from;
		bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

		if (letter || (n > 0 && name[n - 1] != '-'))
			name[n++] = letter ? c : '-';
	}
	while (n > 0 && name[n - 1] == '-')
		n--;
	if (n > 0 && image_name((struct str){ name, n }, ret, e) == 0)
		return 0;
	return err_set(e, ERR_INVALID, "the folder's name is no image name: give one with --tag");
}

/* Whether the file exists. Reading it reports an error if it is not a regular file. */
static bool build_has(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int choose_file(struct job *j, struct err *e)
{
	if (build_has(j->dir, "holt.json"))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(containerfiles) && !j->container; i++)
		j->container = build_has(j->dir, containerfiles[i]) ? containerfiles[i] : NULL;
	if (!j->container)
		return err_set(e, ERR_INVALID,
			       "the folder has neither holt.json nor Containerfile");
	return j->place.grants.allow.n == 0
		     ? 0
		     : err_set(e, ERR_INVALID,
			       "--allow is for the lines of holt.json; buildah gives those of %s "
			       "the caller's network",
			       j->container);
}

/* ---- building -------------------------------------------------------------------------------- */

/* The grants in one order, whatever that of the command line: caches know them by this text. */
static int grants_text(const struct net_grant *g, struct buf *to, struct err *e)
{
	char last[NET_RULE_TEXT] = "", next[NET_RULE_TEXT] = "", text[NET_RULE_TEXT];
	autogrant struct net_grant sorted = { .n = 0 };
	const struct net_http_rule *http;
	size_t at, n_http;

	if (g->n && net_grant_init(&sorted, e) < 0)
		return -1;
	for (size_t k = 0; k < g->n; k++) {
		at = g->n;
		for (size_t i = 0; i < g->n; i++) {
			net_rule_print(&g->rules[i], text);
			if (strcmp(text, last) > 0 && (at == g->n || strcmp(text, next) < 0)) {
				at = i;
				memcpy(next, text, sizeof(next));
			}
		}
		if (at == g->n)
			break;
		memcpy(last, next, sizeof(last));
		http = net_grant_http(g, at, &n_http);
		if (net_grant_add(&sorted, &g->rules[at], http, n_http, e) < 0)
			return -1;
	}
	return net_grant_print(&sorted, to, e);
}

static int work(void *arg, void *out, struct err *e)
{
	struct job *j = arg;
	struct built *ret = out;
	autobuf struct buf network = BUF_INIT(GRANTS_TEXT_MAX);
	struct image_build b = {
		.dir = j->dir,
		.name = j->name,
		.no_cache = j->how->no_cache,
		.no_keep = j->how->no_keep,
		.run = build_steps,
		.arg = &j->place,
	};
	AUTO(images_close) struct images *s = image_cli_open(e);
	autoimage struct image i = { .record = { .bytes = 0 } };
	int rc = -1;

	if (grants_text(&j->place.grants.allow, &network, e) < 0)
		return -1;
	b.network = buf_str(&network);
	if (s && j->container)
		rc = build_container(s, j->dir, j->container, j->name, &i, e);
	else if (s)
		rc = images_build(s, &b, &i, &ret->cached, e);
	if (rc < 0)
		return -1;
	memcpy(ret->name, j->name, sizeof(ret->name));
	snprintf(ret->digest, sizeof(ret->digest), "%.*s", STR_ARG(i.record.digest));
	return 0;
}

/* ---- the call -------------------------------------------------------------------------------- */

struct build_request {
	struct str folder, name, file, allow;
	struct field_strs network, services;
	bool no_cache;
	const struct net_grant *grant; /* what network and services say */
};
static const struct field request_fields[] = {
	FIELD(struct build_request, folder, .flags = FIELD_REQUIRED,
	      .doc = "Folder to build from."),
	FIELD(struct build_request, name, .flags = FIELD_REQUIRED, .doc = "Name of the image."),
	FIELD(struct build_request, file, .flags = FIELD_REQUIRED,
	      .doc = "Name of the build file, such as holt.json."),
	FIELD(struct build_request, allow, .doc = "Isolation features that may be missing."),
	FIELD(struct build_request, network,
	      .doc = "Hosts that its commands may reach, as for --allow."),
	FIELD(struct build_request, services, .doc = "Services of the host, as for --service."),
	FIELD(struct build_request, no_cache, .doc = "Do not use results of earlier builds."),
};
static const struct field_table request_table = FIELD_TABLE(struct build_request, request_fields);

static void build_begin(struct call *c, const void *request)
{
	const struct build_request *q = request;
	struct err e = ERR_INIT;

	if (network_check(c, q->grant, &e) < 0)
		call_fail(c, &e);
	else
		local_run(c, request);
}

static const struct op build_op = {
	.action = "image.build",
	.doc = "Build an image from a folder.",
	.effect = OP_EXECUTE,
	.request = &request_table,
	.run = build_begin,
};

static struct field_strs build_texts(const struct option_list *l, struct str *texts)
{
	for (size_t i = 0; i < l->n; i++)
		texts[i] = str_of(l->p[i]);
	return (struct field_strs){ texts, l->n };
}

static int build_start(const char *path, struct job *j, struct built *ret, struct err *e)
{
	const struct worker w = { .clean = image_cli_tidy };
	static const struct network_options none;
	const struct network_options *network = j->how->network ? j->how->network : &none;
	struct str allow[OPTION_LIST_MAX], services[OPTION_LIST_MAX];
	const struct build_request request = {
		.folder = str_of(path),
		.name = str_of(j->name),
		.file = str_of(j->container ? j->container : "holt.json"),
		.no_cache = j->how->no_cache,
		.allow = str_of(j->how->allow),
		.network = build_texts(&network->allow, allow),
		.services = build_texts(&network->services, services),
		.grant = &j->place.grants.allow,
	};
	struct verb_call *call = verb_call_begin(j->how->cli, j->how->config, &build_op, &request,
						 e);
	int rc = call ? worker_run(&w, work, j, ret, sizeof(*ret), e) : -1;

	verb_call_end(call, rc < 0 ? e : NULL);
	return rc;
}

int build_folder(const char *path, const struct build_how *how, struct built *ret, struct err *e)
{
	autoclose int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct job j = { .how = how, .dir = dir, .place.allow = how->allow };
	int rc = -1;

	if (dir < 0)
		return err_set(e, ERR_INVALID, "%.120s: %s", path, strerror(errno));
	if ((how->name ? image_name(str_of(how->name), j.name, e)
		       : name_of_folder(dir, j.name, e)) < 0)
		return -1;
	*ret = (struct built){ .cached = false };
	if ((!how->network ||
	     grants_read_own(how->network, how->config, &j.place.grants, e) == 0) &&
	    choose_file(&j, e) == 0)
		rc = build_start(path, &j, ret, e);
	grants_fini(&j.place.grants);
	return rc;
}

/* ---- the verb -------------------------------------------------------------------------------- */

struct build_options {
	struct verb_options common;
	const char *tag, *allow, *config;
	struct network_options network;
	bool no_cache, no_keep;
	uint32_t output;
};

static const struct option_row rows[] = {
	OPTION(struct build_options, tag, OPTION_TEXT, "tag", .letter = 't', .arg = "NAME[:TAG]",
	       .doc = "Name of the image; by default the folder's name."),
	OPTION(struct build_options, no_cache, OPTION_FLAG, "no-cache",
	       .doc = "Build even if the same was built before."),
	OPTION(struct build_options, no_keep, OPTION_FLAG, "no-keep",
	       .doc = "Keep no results of lines for later builds."),
	OWN_NETWORK_ROWS(struct build_options, network),
	BUILD_ALLOW_ROW(struct build_options),
	CONFIG_ROW(struct build_options, config),
	OUTPUT_ROW(struct build_options),
	HELP_ROW(struct build_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static const struct field built_fields[] = {
	FIELD(struct image_name, name, .flags = FIELD_REQUIRED, .doc = "Name of the image."),
	FIELD(struct image_name, digest, .flags = FIELD_REQUIRED, .doc = "Digest of the image."),
};
static const struct field_table built_table = FIELD_TABLE(struct image_name, built_fields);

static int build_run(const struct verb_input *in, struct err *e)
{
	const struct build_options *o = in->options;
	const struct build_how how = { .name = o->tag,
				       .allow = o->allow,
				       .no_cache = o->no_cache,
				       .no_keep = o->no_keep,
				       .cli = in->cli,
				       .config = o->config,
				       .network = &o->network };
	struct image_name about;
	struct built built;

	if (build_folder(in->operands[0], &how, &built, e) < 0)
		return -1;
	about = (struct image_name){ str_of(built.name), str_of(built.digest) };
	if (o->output == OUTPUT_JSON)
		return cli_print_object(&built_table, &about, e);
	printf("%s  %.12s%s\n", built.name, built.digest, built.cached ? "  (built before)" : "");
	return 0;
}

const struct verb build_verb = {
	.name = "build",
	.usage = "[OPTION...] FOLDER",
	.doc = "Build an image that sandboxes can be made from.",
	.more = "holt.json in the folder names a base, files, environment, and commands that run\n"
		"in a sandbox. Without it, a Containerfile or Dockerfile is built with\n"
		"buildah: a separate program, which does not use a sandbox.",
	.page = "holt-build",
	.options = &options,
	.size = sizeof(struct build_options),
	.min_operands = 1,
	.run = build_run,
};
