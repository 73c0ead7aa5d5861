/* Fetches a package: writes the folder of a build, and has it built; or has an image pulled. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "modules/guests.h"
#include "modules/package.h"
#include "net/wire/rule.h"
#include "modules/registry.h"
#include "modules/verb.h"

enum {
	FETCH_SECONDS = 900, /* of all; its step has fewer */
	STEP_SECONDS = 600,
	MEMORY_MB = 512, /* beside the files, which are in memory, too */
	PIDS = 512,
	CAUSE_MAX = 400,
	DOC_MAX = 64 << 10,
	ADDRESSES_MAX = 16,
};

struct package_fetch {
	struct package_fetch_spec spec;
	struct verb_run *build; /* NULL: not started yet */
	struct config_package entry; /* of name and version only the texts below */
	char config[PATH_MAX]; /* the operator's file; "": none */
	char folder[PATH_MAX]; /* "": not made yet */
	char image[IMAGE_NAME_MAX + 1]; /* the name that it gets */
	char what[CONFIG_PACKAGE_NAME_MAX + CONFIG_PACKAGE_VERSION_MAX + 16]; /* "npm NAME@V" */
	struct registry registry;
	bool cancelled;
	uint32_t package_mb;
	uv_getaddrinfo_t lookup;
	size_t looked; /* hosts of the registry, so far */
	char addresses[ADDRESSES_MAX][NET_RULE_TEXT]; /* rules of special ones */
	size_t n_addresses;
};

/* ---- the folder ------------------------------------------------------------------------------ */

/* What it consists of; it is removed file by file. */
static const char *const fetch_files[] = {
	"package/package.json",	    "package/.npmrc",	   "package/npm.js",
	"package/fetch_npm.sh",	    "package/scripts",	   "package/ca.pem",
	"package/requirements.txt", "package/pip.conf",	   "package/pypi.py",
	"package/fetch_pypi.sh",    "package/wanted.json", "holt.json",
};

static int fetch_write(const struct package_fetch *f, const char *name, struct str text,
		       struct err *e)
{
	char path[PATH_MAX + 64];
	autoclose int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", f->folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	return fd < 0 || fd_write(fd, text.p, text.n) < 0
		     ? err_sys(e, errno, "write %s of a package", name)
		     : 0;
}

static void fetch_remove(const struct package_fetch *f)
{
	char path[PATH_MAX + 64];

	if (!*f->folder)
		return;
	for (size_t i = 0; i < ARRAY_LEN(fetch_files); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->folder, fetch_files[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/package", f->folder);
	rmdir(path);
	rmdir(f->folder);
}

static void fetch_member(struct json_writer *w, const char *key, struct str value)
{
	if (!value.p)
		return;
	json_write_key(w, key);
	json_write_str(w, value);
}

/* {"holt": {…}}, and for npm what it is to install. */
static int fetch_write_wanted(const struct package_fetch *f, struct str wanted, struct err *e)
{
	const struct config_package *p = &f->entry;
	bool npm = p->kind == CONFIG_NPM;
	struct str version = p->version.p ? p->version : STR_LIT("latest");
	autobuf struct buf text = BUF_INIT(DOC_MAX);
	struct json_writer w = json_writer(&text);
	char key[CONFIG_PACKAGE_NAME_MAX + 1];

	json_write_object(&w);
	if (npm) {
		json_write_key(&w, "private");
		json_write_bool(&w, true);
		json_write_key(&w, "dependencies");
		json_write_object(&w);
		snprintf(key, sizeof(key), "%.*s", STR_ARG(p->name));
		fetch_member(&w, key, version);
		json_write_object_end(&w);
		json_write_key(&w, "holt");
		json_write_object(&w);
	}
	fetch_member(&w, "wanted", wanted);
	fetch_member(&w, "name", p->name);
	fetch_member(&w, "program", p->program);
	if (npm)
		json_write_object_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0
		     ? -1
		     : fetch_write(f, npm ? "package/package.json" : "package/wanted.json",
				   buf_str(&text), e);
}

/* pip's own form of what uvx has: NAME@VERSION is NAME==VERSION. */
static int fetch_write_requirement(const struct package_fetch *f, struct err *e)
{
	const struct config_package *p = &f->entry;
	autobuf struct buf line = BUF_INIT(DOC_MAX);
	struct str version = p->version;
	bool at = version.n && *version.p == '@';

	if (at)
		version = (struct str){ version.p + 1, version.n - 1 };
	return buf_addf(&line, e, "%.*s%s%.*s\n", STR_ARG(p->name), at ? "==" : "",
			STR_ARG(version)) < 0
		     ? -1
		     : fetch_write(f, "package/requirements.txt", buf_str(&line), e);
}

static int fetch_write_build(const struct package_fetch *f, struct err *e)
{
	bool npm = f->entry.kind == CONFIG_NPM;
	autobuf struct buf text = BUF_INIT(DOC_MAX);
	struct json_writer w = json_writer(&text);
	unsigned disk = f->package_mb;
	const char *more = npm ? "" : ",\"env\":{\"PYTHONPATH\":\"/opt/package/lib\"}";

	json_write_object(&w);
	fetch_member(&w, "base", f->spec.server->sandbox.template);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	text.n--;
	if (buf_addf(&text, e,
		     ",\"files\":[{\"from\":\"package\",\"to\":\"/opt/package\"}]%s,"
		     "\"run\":[\"sh /opt/package/%s\"],\"timeout_seconds\":%d,\"limits\":"
		     "{\"memory_mb\":%u,\"disk_mb\":%u,\"pids\":%d}}",
		     more, npm ? "fetch_npm.sh" : "fetch_pypi.sh", STEP_SECONDS, MEMORY_MB + disk,
		     disk, PIDS) < 0)
		return -1;
	return fetch_write(f, "holt.json", buf_str(&text), e);
}

/* The certificates that the operator's tools trust their registry by. */
static int fetch_write_authority(const struct package_fetch *f, struct err *e)
{
	autobuf struct buf text = BUF_INIT(4 << 20);
	autoclose int fd = -1;
	ssize_t n = 1;

	if (!*f->registry.authority)
		return 0;
	fd = open(f->registry.authority, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	while (fd >= 0 && n > 0) {
		char *at = buf_reserve(&text, 64 << 10, e);

		n = at ? read(fd, at, 64 << 10) : 0;
		if (!at)
			return err_wrap(e, "%.120s", f->registry.authority);
		buf_advance(&text, n > 0 ? (size_t)n : 0);
	}
	if (fd < 0 || n < 0)
		return err_sys(e, errno, "read %.120s, the certificates of the registry",
			       f->registry.authority);
	return fetch_write(f, "package/ca.pem", buf_str(&text), e);
}

/* Beside the images, by the module's name: what a killed hub has left there is replaced. */
static int fetch_folder(struct package_fetch *f, struct err *e)
{
	const char *images = f->spec.images, *slash = strrchr(images, '/');
	int n = snprintf(f->folder, sizeof(f->folder), "%.*s/packages",
			 slash ? (int)(slash - images) : 0, images);

	if (mkdir(f->folder, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make a folder for packages");
	snprintf(f->folder + n, sizeof(f->folder) - (size_t)n, "/%.*s",
		 STR_ARG(f->spec.server->name));
	fetch_remove(f);
	return mkdir(f->folder, 0700) < 0 ? err_sys(e, errno, "make a folder for a package") : 0;
}

static int fetch_write_all(struct package_fetch *f, struct err *e)
{
	bool npm = f->entry.kind == CONFIG_NPM;
	autobuf struct buf wanted = BUF_INIT(DOC_MAX);
	char path[PATH_MAX + 64];

	if (fetch_folder(f, e) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/package", f->folder);
	if (mkdir(path, 0755) < 0)
		return err_sys(e, errno, "make a folder for a package");
	if (package_wanted(f->spec.server, &wanted, e) < 0 ||
	    fetch_write_wanted(f, buf_str(&wanted), e) < 0 ||
	    (!npm && fetch_write_requirement(f, e) < 0) || fetch_write_build(f, e) < 0 ||
	    fetch_write_authority(f, e) < 0 ||
	    fetch_write(f, npm ? "package/.npmrc" : "package/pip.conf",
			buf_str(&f->registry.settings), e) < 0 ||
	    fetch_write(f, npm ? "package/npm.js" : "package/pypi.py",
			str_of(npm ? guest_npm : guest_pypi), e) < 0 ||
	    fetch_write(f, npm ? "package/fetch_npm.sh" : "package/fetch_pypi.sh",
			str_of(npm ? guest_fetch_npm : guest_fetch_pypi), e) < 0)
		return -1;
	return f->spec.server->sandbox.install_scripts
		     ? fetch_write(f, "package/scripts", STR_LIT("\n"), e)
		     : 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* skopeo's: time="…" level=fatal msg="…" */
static bool fetch_tells_fatal(struct str *line)
{
	static const char mark[] = "level=fatal msg=\"";
	const char *at = memmem(line->p, line->n, mark, sizeof(mark) - 1);

	if (!at)
		return false;
	at += sizeof(mark) - 1;
	line->n = (size_t)(line->p + line->n - at);
	line->p = at;
	line->n -= line->n && line->p[line->n - 1] == '"';
	return true;
}

/* A line of npm or pip that tells why, without what begins each. */
static bool fetch_tells(struct str *line)
{
	static const char *const begin[] = { "npm error ", "ERROR: ", "sh: " };
	static const char *const empty[] = { "code ",
					     "errno ",
					     "syscall ",
					     "signal ",
					     "404  ",
					     "404 Note that you can also",
					     "404 tarball, folder",
					     "A complete log" };
	size_t i = 0;

	if (fetch_tells_fatal(line))
		return true;
	while (i < ARRAY_LEN(begin) && !str_starts(*line, begin[i]))
		i++;
	if (i == ARRAY_LEN(begin))
		return false;
	*line = (struct str){ line->p + strlen(begin[i]), line->n - strlen(begin[i]) };
	for (i = 0; i < ARRAY_LEN(empty); i++) {
		if (str_starts(*line, empty[i]))
			return false;
	}
	return line->n > 4;
}

/* The lines that tell, or else the last one. */
static void fetch_cause(struct str err, char ret[CAUSE_MAX])
{
	struct str last = STR_LIT("it did not say why");
	size_t n = 0;

	ret[0] = '\0';
	while (err.n) {
		const char *end = memchr(err.p, '\n', err.n);
		struct str line = { err.p, end ? (size_t)(end - err.p) : err.n };

		err.p += line.n + (end != NULL);
		err.n -= line.n + (end != NULL);
		if (line.n)
			last = line;
		if (fetch_tells(&line) && n < CAUSE_MAX - 1)
			n += (size_t)snprintf(ret + n, CAUSE_MAX - n, "%s%.*s", n ? "; " : "",
					      STR_CUT(line, CAUSE_MAX));
	}
	if (!n)
		snprintf(ret, CAUSE_MAX, "%.*s", STR_CUT(last, CAUSE_MAX - 1));
	for (char *c = ret; *c; c++)
		*c = (unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f ? ' ' : *c;
}

static bool fetch_says(struct str err, const char *word)
{
	return err.n && memmem(err.p, err.n, word, strlen(word));
}

static void fetch_fail(const struct package_fetch *f, const struct verb_end *end, struct err *e)
{
	char cause[CAUSE_MAX];

	fetch_cause(end->err, cause);
	if (fetch_says(end->err, "ENOSPC") || fetch_says(end->err, "No space left"))
		snprintf(cause, sizeof(cause),
			 "it has more files, or larger ones, than %u MiB hold "
			 "(modules.packageMegabytes of the operator's file)",
			 f->package_mb);
	if (end->late)
		err_set(e, ERR_PACKAGE, "%s was not fetched from %.200s in %d s", f->what,
			f->registry.url, FETCH_SECONDS);
	else if (f->entry.kind == CONFIG_IMAGE)
		err_set(e, ERR_PACKAGE, "%s was not pulled: %s", f->what, cause);
	else
		err_set(e, ERR_PACKAGE, "%s was not fetched from %.200s: %s", f->what,
			f->registry.url, cause);
}

/* {"name": …, "digest": …}, or of an image {"image": {"digest": …}}; what has failed prints
 * nothing. */
static bool fetch_digest(struct str out, char ret[HASH_HEX + 1])
{
	struct err none;
	AUTO(json_free) struct json_doc *doc = out.n ? json_parse(out, NULL, &none) : NULL;
	const struct json_val *root = doc ? json_root(doc) : NULL, *image = json_get(root, "image");
	struct str digest = json_str(json_get(image ? image : root, "digest"));

	if (!hash_is_hex(digest))
		return false;
	snprintf(ret, HASH_HEX + 1, "%.*s", STR_ARG(digest));
	return true;
}

static void fetch_free(struct package_fetch *f)
{
	fetch_remove(f);
	registry_fini(&f->registry);
	free(f);
}

static void fetch_end(struct package_fetch *f, const char *image, const struct err *e)
{
	struct package_fetch_spec spec = f->spec;

	fetch_free(f);
	spec.on_done(spec.owner, image, e);
}

static void fetch_on_built(void *arg, const struct verb_end *end)
{
	struct package_fetch *f = arg;
	char digest[HASH_HEX + 1];
	struct err e = ERR_INIT;

	if (!fetch_digest(end->out, digest))
		fetch_fail(f, end, &e);
	fetch_end(f, e.code ? NULL : digest, e.code ? &e : NULL);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static size_t fetch_allow(const char *words[], size_t n, const char *rule)
{
	words[n++] = "--allow";
	words[n++] = rule;
	return n;
}

static int fetch_build(struct package_fetch *f, struct err *e)
{
	const char *words[VERB_WORDS_MAX] = { "build", "--no-cache", "--no-keep", "-o",
					      "json",  "--tag",	     f->image };
	size_t n = 7;

	for (size_t i = 0; i < f->registry.n_hosts; i++)
		n = fetch_allow(words, n, f->registry.hosts[i]);
	for (size_t i = 0; i < f->n_addresses; i++)
		n = fetch_allow(words, n, f->addresses[i]);
	for (size_t i = 0; f->spec.options && f->spec.options[i]; i++) {
		if (n + 4 >= ARRAY_LEN(words))
			return err_set(e, ERR_LIMIT, "the hub has too many services");
		words[n++] = f->spec.options[i];
	}
	if (*f->config) {
		words[n++] = "--config";
		words[n++] = f->config;
	}
	words[n++] = f->folder;
	f->build = verb_run_start(f->spec.loop, words, FETCH_SECONDS, fetch_on_built, f, e);
	return f->build ? 0 : -1;
}

/* As docker does: an image of the store that has the name, or else what the registry has. */
static int fetch_image(struct package_fetch *f, struct err *e)
{
	AUTO(images_close) struct images *s = images_look(f->spec.images, e);
	autoimage struct image found = { .record = { .bytes = 0 } };
	struct err none = ERR_INIT;
	char reference[CONFIG_PACKAGE_NAME_MAX + 1];
	const char *pull[] = { "images", "pull", "-o", "json", reference, f->image, NULL };
	const char *inspect[] = { "images", "inspect", "-o", "json", reference, NULL };
	bool here;

	snprintf(reference, sizeof(reference), "%.*s%.*s", STR_ARG(f->entry.name),
		 STR_ARG(f->entry.version));
	if (!s && e->code != ERR_TEMPLATE_NOT_FOUND)
		return -1;
	*e = (struct err)ERR_INIT;
	here = s && !f->entry.pulls && images_find(s, str_of(reference), &found, &none) == 0;
	f->build = verb_run_start(f->spec.loop, here ? inspect : pull, FETCH_SECONDS,
				  fetch_on_built, f, e);
	return f->build ? 0 : -1;
}

/* A registry of the firm, or behind split DNS, has an address that is no public one: no name is
 * granted that (docs/network.md), but the operator's own tools go there. */
static void fetch_address(struct package_fetch *f, const char *host, const struct addrinfo *a)
{
	struct net_rule rule;
	struct net_addr address;
	char text[NET_ADDR_TEXT];
	struct err ignored;

	if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST) ||
	    !net_addr_parse(str_of(text), &address) || net_addr_class(&address) == NET_PUBLIC ||
	    net_rule_parse(str_of(host), true, &rule, &ignored) < 0 ||
	    f->n_addresses == ADDRESSES_MAX)
		return;
	snprintf(f->addresses[f->n_addresses++], NET_RULE_TEXT,
		 address.family == 6 ? "[%s]:%u" : "%s:%u", text, (unsigned)rule.port);
}

static int fetch_look_up(struct package_fetch *f, struct err *e);

static void fetch_on_address(uv_getaddrinfo_t *q, int status, struct addrinfo *found)
{
	struct package_fetch *f = q->data;
	const char *host = f->registry.hosts[f->looked++];
	struct err e = ERR_INIT;

	for (const struct addrinfo *a = status == 0 ? found : NULL; a; a = a->ai_next)
		fetch_address(f, host, a);
	uv_freeaddrinfo(found);
	if (fetch_look_up(f, &e) < 0)
		fetch_end(f, NULL, &e);
}

/* The next of its hosts that is a name; behind the last, it is built. One that can't be resolved is
 * told by npm. */
static int fetch_look_up(struct package_fetch *f, struct err *e)
{
	static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct err none;
	struct net_rule r;

	f->lookup.data = f;
	for (; f->looked < f->registry.n_hosts && !f->cancelled; f->looked++) {
		const char *host = f->registry.hosts[f->looked];

		if (net_is_service(str_of(host)) ||
		    net_rule_parse(str_of(host), true, &r, &none) < 0 || r.kind != NET_RULE_NAME)
			continue;
		if (uv_getaddrinfo(f->spec.loop, &f->lookup, fetch_on_address, r.host, NULL,
				   &hints) == 0)
			return 0;
	}
	return f->cancelled ? err_set(e, ERR_CANCELLED, "Holt is shutting down")
			    : fetch_build(f, e);
}

struct package_fetch *package_fetch_start(const struct package_fetch_spec *spec, struct err *e)
{
	struct package_fetch *f = calloc(1, sizeof(*f));
	char id[ID_MAX];
	int rc;

	if (!f)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	f->spec = *spec;
	f->package_mb = config_file(spec->config)->modules.package_mb;
	if (config_exists(spec->config) && config_path(spec->config))
		snprintf(f->config, sizeof(f->config), "%s", config_path(spec->config));
	rc = config_package_read(spec->server, &f->entry, e);
	if (rc == 0)
		rc = err_set(e, ERR_BUG, "the entry runs no package");
	id_make(id, "p");
	if (spec->image)
		snprintf(f->image, sizeof(f->image), "%s", spec->image);
	else
		snprintf(f->image, sizeof(f->image), PACKAGE_IMAGES "%.*s:%s",
			 STR_ARG(spec->server->name), id);
	snprintf(f->what, sizeof(f->what), "%s %.*s%s%.*s",
		 rc > 0 ? config_package_kind_names[f->entry.kind] : "", STR_ARG(f->entry.name),
		 f->entry.version.p && f->entry.kind == CONFIG_NPM ? "@" : "",
		 STR_ARG(f->entry.version));
	if (rc > 0 && f->entry.kind == CONFIG_IMAGE && fetch_image(f, e) == 0)
		return f;
	if (rc > 0 && f->entry.kind != CONFIG_IMAGE &&
	    registry_read(f->entry.kind, &f->registry, e) == 0 && fetch_write_all(f, e) == 0 &&
	    fetch_look_up(f, e) == 0)
		return f;
	fetch_free(f);
	return NULL;
}

void package_fetch_cancel(struct package_fetch *f)
{
	f->cancelled = true;
	if (f->build)
		verb_run_cancel(f->build);
}
