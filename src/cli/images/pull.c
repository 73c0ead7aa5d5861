/*
 * `holt images pull`: skopeo copies an image into a folder of the store, from where it is imported
 * as usual. skopeo's configuration decides which registries and signatures are trusted. The
 * reference is checked here: it becomes one argument, never an option, and must not name a source
 * that starts or asks another program.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/images/store.h"
#include "cli/common/worker.h"

enum { REF_MAX = 512 };

/* ---- what is asked for ----------------------------------------------------------------------- */

struct source {
	char text[PATH_MAX + REF_MAX]; /* as skopeo takes it */
	char name[IMAGE_NAME_MAX + 1]; /* that the reference gives; "": it gives none */
};

/* Those that are a path here. */
static const char *const of_paths[] = { "oci:", "oci-archive:", "docker-archive:", "dir:" };

/* Transports of skopeo that ask other programs or their stores. After docker:// they are
 * ordinary names. */
static const char *const refused[] = { "containers-storage:", "docker-daemon:", "ostree:", "sif:",
				       "tarball:" };

static bool all(struct str s, const char *more)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!isalnum((unsigned char)s.p[i]) && !memchr(more, s.p[i], strlen(more)))
			return false;
	}
	return s.n > 0 && isalnum((unsigned char)s.p[0]);
}

/* HOST[:PORT] */
static bool is_host(struct str s)
{
	const char *colon = memchr(s.p, ':', s.n);
	struct str port = colon ? (struct str){ colon + 1, s.n - (size_t)(colon - s.p) - 1 }
				: STR_LIT("0");

	s.n = colon ? (size_t)(colon - s.p) : s.n;
	for (size_t i = 0; i < port.n; i++) {
		if (!isdigit((unsigned char)port.p[i]))
			return false;
	}
	return all(s, ".-") && port.n > 0;
}

/* [HOST/]PATH, with none of its parts empty. */
static bool is_repository(struct str s)
{
	bool first = true;

	while (s.n > 0) {
		const char *slash = memchr(s.p, '/', s.n);
		struct str part = { s.p, slash ? (size_t)(slash - s.p) : s.n };

		if (!all(part, "._-") && !(first && slash && is_host(part)))
			return false;
		first = false;
		s.p += part.n + (slash != NULL);
		s.n -= part.n + (slash != NULL);
		if (slash && s.n == 0)
			return false;
	}
	return !first;
}

static int pull_refuse(const char *ref, struct err *e)
{
	return err_set(e, ERR_INVALID,
		       "\"%.80s\" is no reference: [HOST/]NAME[:TAG][@sha256:DIGEST], or oci:, "
		       "oci-archive:, docker-archive: or dir: and a path",
		       ref);
}

/* A repository of a registry, with a tag, a digest or both. */
static int read_docker(const char *ref, struct source *ret, struct err *e)
{
	struct str name = str_of(strncmp(ref, "docker://", 9) == 0 ? ref + 9 : ref), tag = STR_NONE;
	const char *at = memchr(name.p, '@', name.n), *slash, *colon;
	const struct str whole = name;

	if (at) {
		struct str digest = { at + 1, name.n - (size_t)(at - name.p) - 1 };

		name.n = (size_t)(at - name.p);
		if (!str_starts(digest, "sha256:") ||
		    !hash_is_hex((struct str){ digest.p + 7, digest.n - 7 }))
			return pull_refuse(ref, e);
	}
	slash = memrchr(name.p, '/', name.n);
	colon = memrchr(name.p, ':', name.n);
	if (colon && (!slash || colon > slash)) {
		tag = (struct str){ colon + 1, name.n - (size_t)(colon - name.p) - 1 };
		name.n = (size_t)(colon - name.p);
	}
	if (!is_repository(name) || (tag.p && (tag.n > 128 || !all(tag, "._-"))))
		return pull_refuse(ref, e);
	snprintf(ret->text, sizeof(ret->text), "docker://%.*s", STR_ARG(whole));
	if (at && !tag.p)
		return 0; /* a digest alone is no name */
	return image_name((struct str){ name.p, name.n + (tag.p ? tag.n + 1 : 0) }, ret->name, e);
}

/* skopeo runs in another folder, so a relative path is made absolute. */
static int read_path(const char *ref, const char *transport, struct source *ret, struct err *e)
{
	const char *path = ref + strlen(transport);
	char here[PATH_MAX];

	for (const char *c = path; *c; c++) {
		if (iscntrl((unsigned char)*c))
			return pull_refuse(ref, e);
	}
	if (!*path)
		return pull_refuse(ref, e);
	if (!getcwd(here, sizeof(here)))
		return err_sys(e, errno, "find the working directory");
	if (*path == '/' || strcmp(here, "/") == 0)
		*here = '\0';
	snprintf(ret->text, sizeof(ret->text), "%s%s%s%s", transport, here, *path == '/' ? "" : "/",
		 path);
	return 0;
}

static int read_reference(const char *ref, struct source *ret, struct err *e)
{
	*ret = (struct source){ .name = "" };
	if (strlen(ref) > REF_MAX)
		return pull_refuse(ref, e);
	for (size_t i = 0; i < ARRAY_LEN(of_paths); i++) {
		if (strncmp(ref, of_paths[i], strlen(of_paths[i])) == 0)
			return read_path(ref, of_paths[i], ret, e);
	}
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		if (strncmp(ref, refused[i], strlen(refused[i])) == 0)
			return pull_refuse(ref, e);
	}
	return read_docker(ref, ret, e);
}

/* ---- fetching -------------------------------------------------------------------------------- */

struct job {
	struct source source;
	char name[IMAGE_NAME_MAX + 1];
};

static int fetch(void *arg, int dir, const char *path, struct err *e)
{
	const struct job *j = arg;
	/* Signatures are checked on reading; an OCI layout can't store them. */
	const char *const argv[] = {
		"skopeo", "copy", "--remove-signatures", j->source.text, "oci:layout:holt", NULL
	};
	const struct worker_program p = {
		.argv = argv,
		.dir = dir,
		.quiet = !isatty(STDERR_FILENO),
		.without = "install the package skopeo, or import an archive (holt images import)",
	};
	int status = worker_exec(&p, e);

	if (status > 0)
		return err_set(e, ERR_TRANSPORT, "skopeo could not get it: status %d", status);
	return status;
}

static int work(void *arg, void *out, struct err *e)
{
	struct job *j = arg;
	const struct image_import spec = { .name = str_of(j->name) };
	AUTO(images_close) struct images *s = image_cli_open(e);
	autoimage struct image i = { .record = { .bytes = 0 } };
	char given[IMAGE_NAME_MAX + 1];

	return s ? images_fetch(s, fetch, j, &spec, &i, given, e) : -1;
}

static int choose_name(struct job *j, const char *asked, struct err *e)
{
	if (asked)
		return image_name(str_of(asked), j->name, e);
	if (!*j->source.name)
		return err_set(e, ERR_INVALID, "the reference gives no name: add one after it");
	memcpy(j->name, j->source.name, sizeof(j->name));
	return 0;
}

static int pull_run(const struct verb_input *in, struct err *e)
{
	const struct verb_output *o = in->options;
	const struct worker w = { .clean = image_cli_tidy };
	AUTO(images_close) struct images *s = NULL;
	autoimage struct image i = { .record = { .bytes = 0 } };
	char unused = 0;
	struct job j;

	if (read_reference(in->operands[0], &j.source, e) < 0 ||
	    choose_name(&j, in->operands[1], e) < 0 ||
	    worker_run(&w, work, &j, &unused, sizeof(unused), e) < 0)
		return -1;
	s = image_cli_open(e);
	if (!s || images_find(s, str_of(j.name), &i, e) < 0)
		return -1;
	return image_cli_tell(s, &i, j.name, o->output == OUTPUT_JSON, e);
}

const struct verb images_pull_verb = {
	.name = "images pull",
	.usage = "[OPTION...] REFERENCE [NAME[:TAG]]",
	.doc = "Pull an image from a registry, with skopeo.",
	.more = "REFERENCE is [HOST/]NAME[:TAG][@sha256:DIGEST], with or without docker:// in\n"
		"front; or oci:, oci-archive:, docker-archive: or dir: and what skopeo takes\n"
		"behind it.",
	.options = &verb_output,
	.size = sizeof(struct verb_output),
	.min_operands = 1,
	.max_operands = 2,
	.run = pull_run,
};
